package worker

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
)

// Projects an AdmissionRequest to the fields that a policy claims, as the gateway does.
//
//   - kind, resource, subResource, operation and dryRun always; uid never; namespaceObject only if it is claimed.
//   - A claimed value appears if it exists, and so does every object or array on the path to it.
//   - Arrays keep length and positions: an element that no claim reaches is {}, [] or null, by its own kind.
//   - Where claims overlap, the wider wins.
//
// This code serves tests, so that a policy that reads more than it claims fails before it is deployed.

var alwaysSent = []string{"kind", "resource", "subResource", "operation", "dryRun"}

// projected returns the document for a policy with these inputs, from the members of an AdmissionRequest.
func projected(request map[string]json.RawMessage, inputs Claim) map[string]json.RawMessage {
	if inputs.listed {
		var paths [][]string
		for _, name := range alwaysSent {
			paths = append(paths, []string{name})
		}
		for _, pointer := range inputs.pointers {
			paths = append(paths, tokensOf(pointer))
		}
		return membersOf(request, paths)
	}
	whole := map[string]json.RawMessage{}
	for name, value := range request {
		if name != "uid" && name != "namespaceObject" {
			whole[name] = value
		}
	}
	return whole
}

func membersOf(value map[string]json.RawMessage, paths [][]string) map[string]json.RawMessage {
	found := map[string]json.RawMessage{}
	for name, part := range value {
		below := pathsBelow(paths, name)
		if endsHere(below) || len(below) > 0 && (kindOf(part) == "an object" || kindOf(part) == "an array") {
			found[name] = cut(part, below)
		}
	}
	return found
}

// cut returns the part of a value that the paths reach; an empty value of its kind if they reach none.
func cut(value json.RawMessage, paths [][]string) json.RawMessage {
	if endsHere(paths) {
		return value
	}
	switch kindOf(value) {
	case "an object":
		var members map[string]json.RawMessage
		_ = json.Unmarshal(value, &members) // part of a decoded text
		return written(membersOf(members, paths))
	case "an array":
		if len(paths) == 0 {
			return json.RawMessage("[]")
		}
		var elements []json.RawMessage
		_ = json.Unmarshal(value, &elements)
		for index, element := range elements {
			elements[index] = cut(element, pathsBelow(paths, strconv.Itoa(index)))
		}
		return written(elements)
	default:
		return json.RawMessage("null")
	}
}

// pathsBelow returns the rest of the paths that go through this member or element.
func pathsBelow(paths [][]string, name string) [][]string {
	var below [][]string
	for _, path := range paths {
		if len(path) > 0 && (path[0] == name || path[0] == "*") {
			below = append(below, path[1:])
		}
	}
	return below
}

func endsHere(paths [][]string) bool {
	return slices.ContainsFunc(paths, func(path []string) bool { return len(path) == 0 })
}

func written(value any) json.RawMessage {
	text, _ := encoded(value) // of decoded parts
	return text
}

// encoded returns a value as compact JSON, without escapes for HTML.
func encoded(value any) (json.RawMessage, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}
