package worker

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
)

// What a policy is sent: the parts of an AdmissionRequest that it claims, as the gateway cuts them out.
//
//   - kind, resource, subResource, operation and dryRun always; uid never; namespaceObject only if it is named.
//   - A claimed value that exists appears, and so does every existing object or array on the way to one. What does
//     not exist does not appear.
//   - Arrays keep length and positions: an element that no claim reaches is {}, [] or null, by its own kind.
//   - Where claims overlap, the wider wins.
//
// The gateway does this; here it serves tests, so that a policy which reads more than it claims fails before it is
// deployed.

var alwaysSent = []string{"kind", "resource", "subResource", "operation", "dryRun"}

// projected is the document for a policy with these inputs, of an AdmissionRequest in its JSON shape.
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

// cut is what the paths reach of a value; of one that they do not reach, its kind.
func cut(value json.RawMessage, paths [][]string) json.RawMessage {
	if endsHere(paths) {
		return value
	}
	switch kindOf(value) {
	case "an object":
		var members map[string]json.RawMessage
		_ = json.Unmarshal(value, &members) // it is a part of what has been read already
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

// pathsBelow are the paths that go through this member or element, from there on.
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
	text, _ := encoded(value) // of parts that have been read
	return text
}

// encoded is a value as compact JSON text, without the escapes that HTML would need.
func encoded(value any) (json.RawMessage, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}
