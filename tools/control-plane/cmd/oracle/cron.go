package main

import (
	"encoding/json"
	"fmt"
	"time"
	// The zone database is compiled in, so that the answers do not depend on the machine's.
	_ "time/tzdata"

	"github.com/robfig/cron/v3"
)

// One year of minutes: more than any case needs, and an end for a question with a slip in it.
const maxCronTimes = 366 * 24 * 60

type cronQuestion struct {
	Schedule string    `json:"schedule"`
	TimeZone string    `json:"timeZone,omitempty"`
	After    time.Time `json:"after"`
	Count    int       `json:"count"`
}

type cronAnswer struct {
	cronQuestion
	Times []time.Time `json:"times,omitempty"`
	Error string      `json:"error,omitempty"`
}

// cronTimes lists the next times of a CronJob's schedule. The CronJob controller parses with ParseStandard and
// prefixes the time zone as below (pkg/controller/cronjob, formatSchedule). A schedule that never comes, such as
// the 30th of February, has fewer times than asked for.
func cronTimes(question []byte) (any, error) {
	var asked cronQuestion
	if err := json.Unmarshal(question, &asked); err != nil {
		return nil, fmt.Errorf("a cron question is {schedule, timeZone, after, count}: %w", err)
	}
	if asked.Count < 1 || asked.Count > maxCronTimes {
		return nil, fmt.Errorf("count must be 1 to %d, not %d", maxCronTimes, asked.Count)
	}
	text := asked.Schedule
	if asked.TimeZone != "" {
		text = fmt.Sprintf("TZ=%s %s", asked.TimeZone, asked.Schedule)
	}
	schedule, err := cron.ParseStandard(text)
	if err != nil {
		return cronAnswer{cronQuestion: asked, Error: err.Error()}, nil
	}
	answer := cronAnswer{cronQuestion: asked}
	for at := asked.After.UTC(); len(answer.Times) < asked.Count; {
		if at = schedule.Next(at); at.IsZero() {
			break
		}
		answer.Times = append(answer.Times, at.UTC())
	}
	return answer, nil
}
