package agnhost

import (
	"encoding/json"
	"fmt"

	"admission-gateway.dev/worker"
)

// Objects as agnhost decodes them. Its own decoders are Go's, so what they say of other objects is written down
// here for the cases that it meets: no object at all, an object of an unknown kind, and data that are no texts.

// errNoObject is what Go's decoder says of an empty text.
const errNoObject = "unexpected end of JSON input"

type metadata struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
}

// unknownKind is what agnhost's decoder says of an object that is not the one that it looks for; empty: nothing.
// What was not granted says nothing of its kind.
func unknownKind(raw json.RawMessage, kind, version string) string {
	var found struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if json.Unmarshal(raw, &found) != nil || found.Kind == "" && found.APIVersion == "" || found.Kind == kind && found.APIVersion == version {
		return ""
	}
	return fmt.Sprintf("no kind %q is registered for version %q in scheme \"pkg/runtime/scheme.go:111\"", found.Kind, found.APIVersion)
}

// isAbsent says that there is no object.
func isAbsent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// dataOf an object: texts by key. wrong is what Go's decoder says of other data; place is how it calls them.
func dataOf(raw json.RawMessage, place string) (data map[string]string, wrong string) {
	if isAbsent(raw) {
		return nil, errNoObject
	}
	var found struct {
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(raw, &found); err != nil {
		return nil, err.Error()
	}
	if isAbsent(found.Data) {
		return nil, ""
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(found.Data, &members) != nil {
		return nil, mismatch(found.Data, place, "map[string]string")
	}
	data = map[string]string{}
	for key, value := range members {
		var text string
		if json.Unmarshal(value, &text) != nil {
			return nil, mismatch(value, place, "string")
		}
		data[key] = text
	}
	return data, ""
}

// mismatch is a json.UnmarshalTypeError in Go's words.
func mismatch(value json.RawMessage, place, wanted string) string {
	words := map[byte]string{'{': "object", '[': "array", '"': "string", 't': "bool", 'f': "bool"}
	word := words[value[0]]
	if word == "" {
		word = "number"
	}
	return fmt.Sprintf("json: cannot unmarshal %s into Go struct field %s of type %s", word, place, wanted)
}

// judgedObject is the object that the data policies look at: on DELETE the one that is stored.
func judgedObject(request *worker.Request) json.RawMessage {
	if request.Operation == "DELETE" {
		return request.RawOldObject
	}
	return request.RawObject
}
