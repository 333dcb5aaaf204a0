package worker_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// decodeText decodes JSON, its numbers as they are written.
func decodeText(t *testing.T, text string, into any) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		t.Fatal(err)
	}
}
