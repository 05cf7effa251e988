package main

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

type mergeQuestion struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Original   json.RawMessage `json:"original"`
	Patch      json.RawMessage `json:"patch"`
}

type mergeAnswer struct {
	mergeQuestion
	Merged json.RawMessage `json:"merged,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// strategicMerge applies a strategic merge patch to an object of a built-in kind, before any defaulting.
func strategicMerge(question []byte) (any, error) {
	var asked mergeQuestion
	if err := json.Unmarshal(question, &asked); err != nil {
		return nil, fmt.Errorf("an smp question is {apiVersion, kind, original, patch}: %w", err)
	}
	typed, err := scheme.Scheme.New(schema.FromAPIVersionAndKind(asked.APIVersion, asked.Kind))
	if err != nil {
		return nil, fmt.Errorf("no built-in kind: %w", err)
	}
	merged, err := strategicpatch.StrategicMergePatch(asked.Original, asked.Patch, typed)
	if err != nil {
		return mergeAnswer{mergeQuestion: asked, Error: err.Error()}, nil
	}
	return mergeAnswer{mergeQuestion: asked, Merged: merged}, nil
}
