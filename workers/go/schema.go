package worker

import (
	"encoding/json"
	"reflect"
)

// Generates a JSON Schema (2020-12) from the type of the settings, for documentation and editors. It requires and
// forbids the same as ValidateSettings. For types with their own decoder it allows any value.

const dialect = "https://json-schema.org/draft/2020-12/schema"

// schemaOf returns the schema of a type of settings.
func schemaOf(kind reflect.Type, loose bool) json.RawMessage {
	schema := partSchema(kind, loose, nil)
	schema["$schema"] = dialect
	return written(schema)
}

func partSchema(kind reflect.Type, loose bool, around []reflect.Type) map[string]any {
	pointer := kind.Kind() == reflect.Pointer
	kind = bare(kind)
	if readsItself(kind) {
		return map[string]any{}
	}
	for _, outer := range around {
		if outer == kind {
			return map[string]any{} // a recursive type: its author can provide a schema
		}
	}
	schema := kindSchema(kind, loose, append(around, kind))
	if name, is := schema["type"]; pointer && is {
		schema["type"] = []any{name, "null"}
	}
	return schema
}

func kindSchema(kind reflect.Type, loose bool, around []reflect.Type) map[string]any {
	switch kind.Kind() {
	case reflect.Struct:
		return structSchema(kind, loose, around)
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": partSchema(kind.Elem(), loose, around)}
	case reflect.Slice, reflect.Array:
		if kind.Elem().Kind() == reflect.Uint8 {
			return map[string]any{"type": "string", "contentEncoding": "base64"}
		}
		return map[string]any{"type": "array", "items": partSchema(kind.Elem(), loose, around)}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}
	default:
		return map[string]any{}
	}
}

func structSchema(kind reflect.Type, loose bool, around []reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, known := range fieldsOf(kind) {
		properties[known.name] = map[string]any{}
		if !known.quoted {
			properties[known.name] = partSchema(known.kind, loose, around)
		}
		if known.required {
			required = append(required, known.name)
		}
	}
	schema := map[string]any{"type": "object", "properties": properties, "additionalProperties": loose}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}
