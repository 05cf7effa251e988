// Oracle prints what Kubernetes' own Go libraries answer where no server does.
//
// It reads one JSON question per line on stdin and prints one JSON answer per line on stdout, in the same order.
// An answer repeats its question, so that the output alone is a table of cases. A question that the library refuses
// is an answer too, with the library's words in "error"; only a line that is no question at all ends the program.
//
//	oracle quantity   "1.5Gi"
//	oracle cron       {"schedule": "0 2 * * *", "timeZone": "Europe/Berlin", "after": "2026-03-28T00:00:00Z", "count": 3}
//	oracle smp        {"apiVersion": "v1", "kind": "Pod", "original": {...}, "patch": {...}}
//	oracle victims    [{"priority": 0, "started": 17}, {"priority": 0}]
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// An answerer turns one question (a line of JSON) into one answer, or says why the line is no question.
type answerer func(question []byte) (any, error)

var oracles = map[string]answerer{
	"quantity": quantity,
	"cron":     cronTimes,
	"smp":      strategicMerge,
	"victims":  sortVictims,
}

// A question is at most 1 MiB: an API server refuses objects above 1.5 MiB, and our cases are far smaller.
const maxQuestionBytes = 1 << 20

func main() {
	if len(os.Args) != 2 || oracles[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: oracle quantity|cron|smp|victims < questions.jsonl > answers.jsonl")
		os.Exit(2)
	}
	if err := answerAll(oracles[os.Args[1]], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "oracle %s: %v\n", os.Args[1], err)
		os.Exit(2)
	}
}

func answerAll(answer answerer, questions io.Reader, answers io.Writer) (err error) {
	out := bufio.NewWriter(answers)
	defer func() { err = errors.Join(err, out.Flush()) }()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	lines := bufio.NewScanner(questions)
	lines.Buffer(nil, maxQuestionBytes)
	for number := 1; lines.Scan(); number++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		reply, err := answer(lines.Bytes())
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		if err := encoder.Encode(reply); err != nil {
			return fmt.Errorf("line %d: print the answer: %w", number, err)
		}
	}
	return lines.Err()
}
