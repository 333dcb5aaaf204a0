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

// JSON settings into an author's type, and every mistake in them at its own place.
//
// A decoder stops at the first mistake, takes null for anything and misses nothing that is missing. So the text is
// walked beside its type first: members of structs, values of maps, elements of slices, each alone. What a type
// decodes by itself (UnmarshalJSON, UnmarshalText) is tried alone, and may say SettingsErrors with places of its
// own.
//
// A member is required unless its field is a pointer, or its tag says omitempty or omitzero. An unknown one is an
// error, or a warning where the author says so.

// deepest are levels of settings that are walked; below, and in types that hold themselves, the decoder has the word.
const deepest = 64

// walk collects what is wrong with settings.
type walk struct {
	loose    bool // unknown members are warnings
	errors   SettingsErrors
	warnings []string
}

// field is a member of a struct in JSON.
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

// readsItself says that a type, or a pointer to it, decodes itself.
func readsItself(kind reflect.Type) bool {
	pointer := reflect.PointerTo(kind)
	return pointer.Implements(jsonReader) || pointer.Implements(textReader)
}

// fieldsOf are the members of a struct; those of structs that are embedded without a name are its own.
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
		said := strings.Split(options, ",")
		required := one.Type.Kind() != reflect.Pointer && !slices.Contains(said, "omitempty") && !slices.Contains(said, "omitzero")
		found = append(found, field{name, one.Type, required, slices.Contains(said, "string")})
	}
	return found
}

// bare is the type without pointers to it.
func bare(kind reflect.Type) reflect.Type {
	for kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	return kind
}

// value walks one value, of valid JSON, beside its type.
func (w *walk) value(text json.RawMessage, kind reflect.Type, place []any) {
	if kind.Kind() == reflect.Pointer && kindOf(text) == "null" {
		return
	}
	kind = bare(kind)
	if len(place) >= deepest || readsItself(kind) || kind.Kind() == reflect.Interface {
		w.alone(text, kind, place)
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
			w.alone(text, kind, place) // base64 in a string
		} else if w.is("an array", text, place) {
			w.elements(text, kind.Elem(), place)
		}
	case reflect.String:
		w.is("a string", text, place)
	case reflect.Bool:
		w.is("a boolean", text, place)
	default:
		if w.is("a number", text, place) {
			w.alone(text, kind, place)
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
	_ = json.Unmarshal(text, &elements) // it is valid, and an array
	for index, element := range elements {
		w.value(element, kind, append(slices.Clip(place), index))
	}
}

// alone decodes a value that is walked no further.
func (w *walk) alone(text json.RawMessage, kind reflect.Type, place []any) {
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

// member is one of a JSON object.
type member struct {
	name string
	text json.RawMessage
}

// membersInOrder are those of a valid JSON object, as they are written; of two of one name, which come to one, both.
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
