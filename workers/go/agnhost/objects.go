package agnhost

import (
	"encoding/json"
	"fmt"

	"admission-gateway.dev/worker"
)

// Objects as agnhost decodes them. agnhost returns the errors of Go's decoders, so they are repeated here for the
// cases that occur: no object, an object of an unknown kind, and data that are not strings.

// errNoObject is the error of Go's decoder for an empty text.
const errNoObject = "unexpected end of JSON input"

type metadata struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
}

// unknownKind returns the error of agnhost's decoder for an object of another kind; empty: none. An object that is
// not granted has no kind.
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

// isAbsent reports whether there is no object.
func isAbsent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// dataOf returns the data of an object. wrong is the error of Go's decoder for other data, which names them place.
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

// mismatch returns the text of a json.UnmarshalTypeError.
func mismatch(value json.RawMessage, place, wanted string) string {
	words := map[byte]string{'{': "object", '[': "array", '"': "string", 't': "bool", 'f': "bool"}
	word := words[value[0]]
	if word == "" {
		word = "number"
	}
	return fmt.Sprintf("json: cannot unmarshal %s into Go struct field %s of type %s", word, place, wanted)
}

// judgedObject returns the object that the data policies check: on DELETE the stored one.
func judgedObject(request *worker.Request) json.RawMessage {
	if request.Operation == "DELETE" {
		return request.RawOldObject
	}
	return request.RawObject
}
