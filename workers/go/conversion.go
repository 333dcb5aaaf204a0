package worker

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	kubejson "sigs.k8s.io/json"
)

// Converts JSON settings to the author's type, and reports every error with its JSON Pointer.
//
// encoding/json stops at the first error, accepts null for any type and ignores missing members. So the text is first
// compared with the type: members of structs, values of maps, elements of slices, each on its own. Types with
// UnmarshalJSON or UnmarshalText are decoded on their own, and may return SettingsErrors with pointers.
//
// A member is required unless its field is a pointer, or its tag has omitempty or omitzero. An unknown member is an
// error, or a warning with AllowUnknownSettings.

// deepest is the number of levels that are compared. Deeper levels, also of recursive types, are left to the decoder.
const deepest = 64

// walk collects the errors in settings.
type walk struct {
	loose    bool // unknown members are warnings
	errors   SettingsErrors
	warnings []string
}

// field is the JSON member of a struct field.
type field struct {
	name     string
	kind     reflect.Type
	required bool
	quoted   bool // ",string": the value is in a string
}

var (
	jsonReader = reflect.TypeFor[json.Unmarshaler]()
	textReader = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// readsItself reports whether a type, or a pointer to it, has its own decoder.
func readsItself(kind reflect.Type) bool {
	pointer := reflect.PointerTo(kind)
	return pointer.Implements(jsonReader) || pointer.Implements(textReader)
}

// fieldsOf returns the members of a struct, including those of embedded structs without a name.
func fieldsOf(kind reflect.Type) []field {
	var found []field
	for one := range kind.Fields() {
		tag := one.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if tag == "-" || !one.IsExported() && !one.Anonymous {
			continue
		}
		if one.Anonymous && name == "" {
			if embedded := bare(one.Type); embedded.Kind() == reflect.Struct {
				found = append(found, fieldsOf(embedded)...)
				continue
			}
		}
		if name == "" {
			name = one.Name
		}
		tagOptions := strings.Split(options, ",")
		required := one.Type.Kind() != reflect.Pointer && !slices.Contains(tagOptions, "omitempty") && !slices.Contains(tagOptions, "omitzero")
		found = append(found, field{name, one.Type, required, slices.Contains(tagOptions, "string")})
	}
	return found
}

// bare returns the type behind pointers.
func bare(kind reflect.Type) reflect.Type {
	for kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	return kind
}

// value compares one value, which is valid JSON, with its type.
func (w *walk) value(text json.RawMessage, kind reflect.Type, place []any) {
	if kind.Kind() == reflect.Pointer && kindOf(text) == "null" {
		return
	}
	kind = bare(kind)
	if len(place) >= deepest || readsItself(kind) || kind.Kind() == reflect.Interface {
		w.decode(text, kind, place)
		return
	}
	switch kind.Kind() {
	case reflect.Struct:
		if w.is("an object", text, place) {
			w.members(text, fieldsOf(kind), place)
		}
	case reflect.Map:
		if w.is("an object", text, place) {
			for _, one := range membersInOrder(text) {
				w.value(one.text, kind.Elem(), append(slices.Clip(place), one.name))
			}
		}
	case reflect.Slice, reflect.Array:
		if kind.Elem().Kind() == reflect.Uint8 {
			w.decode(text, kind, place) // base64 in a string
		} else if w.is("an array", text, place) {
			w.elements(text, kind.Elem(), place)
		}
	case reflect.String:
		w.is("a string", text, place)
	case reflect.Bool:
		w.is("a boolean", text, place)
	default:
		if w.is("a number", text, place) {
			w.decode(text, kind, place)
		}
	}
}

func (w *walk) members(text json.RawMessage, fields []field, place []any) {
	given := map[string]bool{}
	for _, one := range membersInOrder(text) {
		given[one.name] = true
		below := append(slices.Clip(place), one.name)
		index := slices.IndexFunc(fields, func(known field) bool { return known.name == one.name })
		switch {
		case index >= 0 && !fields[index].quoted:
			w.value(one.text, fields[index].kind, below)
		case index >= 0:
		case w.loose:
			w.warnings = append(w.warnings, Pointer(below...)+" is no member of these settings and is ignored")
		default:
			w.wrong(below, "unknown member; known are: "+namesOf(fields))
		}
	}
	for _, known := range fields {
		if known.required && !given[known.name] {
			w.wrong(append(slices.Clip(place), known.name), "Required value")
		}
	}
}

func (w *walk) elements(text json.RawMessage, kind reflect.Type, place []any) {
	var elements []json.RawMessage
	_ = json.Unmarshal(text, &elements) // the text is a valid array
	for index, element := range elements {
		w.value(element, kind, append(slices.Clip(place), index))
	}
}

// decode decodes a value on its own.
func (w *walk) decode(text json.RawMessage, kind reflect.Type, place []any) {
	err := kubejson.UnmarshalCaseSensitivePreserveInts(text, reflect.New(kind).Interface())
	var several SettingsErrors
	var one SettingsError
	switch {
	case err == nil:
	case errors.As(err, &several):
		for _, each := range several {
			w.errors = append(w.errors, SettingsError{Pointer(place...) + each.Pointer, each.Message})
		}
	case errors.As(err, &one):
		w.errors = append(w.errors, SettingsError{Pointer(place...) + one.Pointer, one.Message})
	case readsItself(kind):
		w.wrong(place, err.Error())
	default:
		w.wrong(place, "must be "+wordFor(kind)+", is "+kindOf(text))
	}
}

func (w *walk) is(wanted string, text json.RawMessage, place []any) bool {
	found := kindOf(text)
	if found != wanted {
		w.wrong(place, "must be "+wanted+", is "+found)
	}
	return found == wanted
}

func (w *walk) wrong(place []any, message string) {
	w.errors = append(w.errors, SettingsError{Pointer(place...), message})
}

func wordFor(kind reflect.Type) string {
	switch kind.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("a whole number of %d bits", kind.Bits())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("a whole number of %d bits, not negative", kind.Bits())
	case reflect.Float32, reflect.Float64:
		return fmt.Sprintf("a number that %d bits hold", kind.Bits())
	default:
		return "of type " + kind.String()
	}
}

func namesOf(fields []field) string {
	var names []string
	for _, known := range fields {
		names = append(names, known.name)
	}
	if len(names) == 0 {
		return "none"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// member is a member of a JSON object.
type member struct {
	name string
	text json.RawMessage
}

// membersInOrder returns the members of a valid JSON object in their order, duplicates included.
func membersInOrder(object json.RawMessage) []member {
	var members []member
	decoder := json.NewDecoder(bytes.NewReader(object))
	_, _ = decoder.Token() // "{"
	for decoder.More() {
		name, _ := decoder.Token()
		var one member
		one.name, _ = name.(string)
		_ = decoder.Decode(&one.text)
		members = append(members, one)
	}
	return members
}
