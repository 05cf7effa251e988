package main

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

type quantityAnswer struct {
	Input string `json:"input"`
	// Canonical is the text that the API server would store and print.
	Canonical string `json:"canonical,omitempty"`
	Format    string `json:"format,omitempty"`
	// Value and MilliValue are rounded up, as the scheduler reads them. Where the number leaves an int64 they are what
	// the library returns, which is not always the nearest int64: it may wrap around.
	Value      *int64 `json:"value,omitempty"`
	MilliValue *int64 `json:"milliValue,omitempty"`
	Error      string `json:"error,omitempty"`
}

// quantity says what resource.ParseQuantity makes of a text.
func quantity(question []byte) (any, error) {
	var text string
	if err := json.Unmarshal(question, &text); err != nil {
		return nil, fmt.Errorf("a quantity question is a JSON string: %w", err)
	}
	parsed, err := resource.ParseQuantity(text)
	if err != nil {
		return quantityAnswer{Input: text, Error: err.Error()}, nil
	}
	value, milliValue := parsed.Value(), parsed.MilliValue()
	return quantityAnswer{
		Input:      text,
		Canonical:  parsed.String(),
		Format:     string(parsed.Format),
		Value:      &value,
		MilliValue: &milliValue,
	}, nil
}
