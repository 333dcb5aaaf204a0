package worker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// The change of an allow: a JSON Patch, a JSON Merge Patch, or the whole object, as JSON text.
//
// The text is encoded when the answer is created, so that later changes of the author's values have no effect on it.
// The gateway checks whether a patch applies.

// ChangeKind is the form of a change.
type ChangeKind string

// The three forms.
const (
	JSONPatch   ChangeKind = "json_patch"
	MergePatch  ChangeKind = "merge_patch"
	WholeObject ChangeKind = "object"
)

// Change is the change of an allow.
type Change struct {
	// Kind is its form.
	Kind ChangeKind
	// JSON is its text; paths start at the object. A test can decode it into operations or an object with
	// json.Unmarshal.
	JSON json.RawMessage

	wrong string // why the text is missing; empty: it is not
}

// Operation is one operation of a JSON Patch. Created by [Add], [Remove], [Replace], [Move], [Copy] and [Test].
type Operation struct {
	// Op is add, remove, replace, move, copy or test.
	Op string
	// Path is a JSON Pointer over the object; [Pointer] makes one and escapes keys.
	Path string
	// From is the source of move and copy.
	From string
	// Value is the value of add, replace and test; nil is null.
	Value any
}

// Add adds a value, replaces that of a member, or inserts an element before the one at an index ("-": at the end).
func Add(path string, value any) Operation { return Operation{Op: "add", Path: path, Value: value} }

// Remove removes a value, which must exist.
func Remove(path string) Operation { return Operation{Op: "remove", Path: path} }

// Replace replaces a value, which must exist.
func Replace(path string, value any) Operation {
	return Operation{Op: "replace", Path: path, Value: value}
}

// Move moves a value.
func Move(from, path string) Operation { return Operation{Op: "move", Path: path, From: from} }

// Copy copies a value.
func Copy(from, path string) Operation { return Operation{Op: "copy", Path: path, From: from} }

// Test makes the patch fail if the path has another value.
func Test(path string, value any) Operation { return Operation{Op: "test", Path: path, Value: value} }

// MarshalJSON encodes the operation as in RFC 6902.
func (o Operation) MarshalJSON() ([]byte, error) {
	switch o.Op {
	case "add", "replace", "test":
		return encoded(struct {
			Op    string `json:"op"`
			Path  string `json:"path"`
			Value any    `json:"value"`
		}{o.Op, o.Path, o.Value})
	case "move", "copy":
		return encoded(struct {
			Op   string `json:"op"`
			Path string `json:"path"`
			From string `json:"from"`
		}{o.Op, o.Path, o.From})
	default:
		return encoded(struct {
			Op   string `json:"op"`
			Path string `json:"path"`
		}{o.Op, o.Path})
	}
}

// Patch admits the request and changes the object by a JSON Patch (RFC 6902). No operations: no change.
func Patch(operations ...Operation) Allowed {
	for index, operation := range operations {
		if wrong := operation.wrong(); wrong != "" {
			return Allowed{Change: &Change{Kind: JSONPatch, wrong: fmt.Sprintf("patch[%d]%s", index, wrong)}}
		}
	}
	if operations == nil {
		operations = []Operation{}
	}
	return Allowed{Change: changeOf(JSONPatch, operations, "patch")}
}

// Merge lets the request pass changed by a JSON Merge Patch (RFC 7386), where null removes and arrays are replaced
// whole: something that is a JSON object, such as map[string]any{"metadata": …}.
func Merge(changes any) Allowed { return Allowed{Change: changeOf(MergePatch, changes, "merge")} }

// Mutated admits the request with this object, which the gateway compares with the one that it sent. Pass a
// map[string]any from [Request.Object]: a struct loses the fields that its type does not have, and the gateway would
// remove them.
func Mutated(object any) Allowed {
	return Allowed{Change: changeOf(WholeObject, object, "mutated")}
}

func (o Operation) wrong() string {
	switch o.Op {
	case "add", "remove", "replace", "move", "copy", "test":
	default:
		return ".op: must be add, remove, replace, move, copy or test"
	}
	if o.Path != "" && !strings.HasPrefix(o.Path, "/") {
		return ".path: must be a JSON Pointer such as /metadata/labels"
	}
	if o.From != "" && !strings.HasPrefix(o.From, "/") {
		return ".from: must be a JSON Pointer such as /metadata/labels"
	}
	return ""
}

func changeOf(kind ChangeKind, value any, what string) *Change {
	text, err := encoded(value)
	if err != nil {
		// The text of the error may quote the value.
		return &Change{Kind: kind, wrong: fmt.Sprintf("%s: cannot be written as JSON: %T", what, err)}
	}
	if kind != JSONPatch && kindOf(text) != "an object" {
		return &Change{Kind: kind, wrong: fmt.Sprintf("%s: must be a JSON object, is %s", what, kindOf(text))}
	}
	return &Change{Kind: kind, JSON: text}
}

// changesNothing reports whether the change can be omitted.
func (c *Change) changesNothing() bool {
	return c == nil || c.Kind == JSONPatch && bytes.Equal(c.JSON, []byte("[]")) ||
		c.Kind == MergePatch && bytes.Equal(c.JSON, []byte("{}"))
}
