package samples

import (
	"bytes"
	"encoding/json"
	"errors"

	"admission-gateway.dev/worker"
)

// ordered is a JSON object that keeps the order of its members, so that patches and messages have the operator's
// order, in every language.
type ordered[V any] struct {
	entries []entry[V]
}

type entry[V any] struct {
	name  string
	value V
}

// UnmarshalJSON decodes an object. It reports all errors, each with its pointer.
func (o *ordered[V]) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if first, err := decoder.Token(); err != nil || first != json.Delim('{') {
		return worker.SettingsError{Message: "must be an object"}
	}
	var wrong worker.SettingsErrors
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return err
		}
		name, _ := token.(string)
		value, err := valueOf[V](raw)
		if err != nil {
			wrong = append(wrong, worker.SettingsError{Pointer: worker.Pointer(name), Message: err.Error()})
		}
		o.set(name, value)
	}
	if len(wrong) > 0 {
		return wrong
	}
	return nil
}

// set sets a value. A later duplicate replaces the value, and keeps the position.
func (o *ordered[V]) set(name string, value V) {
	for index := range o.entries {
		if o.entries[index].name == name {
			o.entries[index].value = value
			return
		}
	}
	o.entries = append(o.entries, entry[V]{name, value})
}

// get returns the value of a name, and whether it exists.
func (o ordered[V]) get(name string) (V, bool) {
	for _, one := range o.entries {
		if one.name == name {
			return one.value, true
		}
	}
	var none V
	return none, false
}

// MarshalJSON encodes the object in its order.
func (o ordered[V]) MarshalJSON() ([]byte, error) {
	var made bytes.Buffer
	made.WriteByte('{')
	for index, one := range o.entries {
		if index > 0 {
			made.WriteByte(',')
		}
		value, err := json.Marshal(one.value)
		if err != nil {
			return nil, err
		}
		made.WriteString(quoted(one.name) + ":")
		made.Write(value)
	}
	made.WriteByte('}')
	return made.Bytes(), nil
}

// errText reports a member that is not a string. encoding/json would take null for "".
var errText = errors.New("must be a string")

func valueOf[V any](raw json.RawMessage) (V, error) {
	var value V
	if _, text := any(value).(string); text && (len(raw) == 0 || raw[0] != '"') {
		return value, errText
	}
	return value, json.Unmarshal(raw, &value)
}
