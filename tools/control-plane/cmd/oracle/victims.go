package main

import (
	"encoding/json"
	"fmt"
	"sort"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// A victim is a pod on a node: its priority and the second at which it started, none if it has not.
type victim struct {
	Priority int32  `json:"priority"`
	Started  *int64 `json:"started,omitempty"`
}

type victimsAnswer struct {
	Pods []victim `json:"pods"`
	// Order has the places of the pods in the question, the most important first.
	Order []int `json:"order"`
}

// sortVictims orders pods as DefaultPreemption does before it decides who may stay (SelectVictimsOnNode): with
// sort.Slice, which is not stable, by MoreImportantPod, which takes a pod that has not started for one that starts now.
func sortVictims(question []byte) (any, error) {
	var asked []victim
	if err := json.Unmarshal(question, &asked); err != nil {
		return nil, fmt.Errorf("a victims question is [{priority, started}, ...]: %w", err)
	}
	answer := victimsAnswer{Pods: asked}
	pods := make([]*v1.Pod, len(asked))
	places := map[*v1.Pod]int{}
	for place, one := range asked {
		pod := &v1.Pod{Spec: v1.PodSpec{Priority: &one.Priority}}
		if one.Started != nil {
			pod.Status.StartTime = &metav1.Time{Time: time.Unix(*one.Started, 0)}
		}
		pods[place], places[pod] = pod, place
	}
	sort.Slice(pods, func(i, j int) bool { return util.MoreImportantPod(pods[i], pods[j]) })
	for _, pod := range pods {
		answer.Order = append(answer.Order, places[pod])
	}
	return answer, nil
}
