package samples

import (
	"bytes"
	"encoding/json"
	"math/big"
	"reflect"
	"strconv"
	"strings"

	"admission-gateway.dev/worker"
)

// Access to objects of any kind, whose fields the API server may not have validated. A value of an unexpected type is
// treated as absent, and never causes a panic.

// object is a JSON object; its numbers are json.Number and keep their text.
type object = map[string]any

// objectOf returns the object of a request; nil on DELETE.
func objectOf(request *worker.Request) (object, error) {
	var found object
	_, err := request.Object(&found)
	return found, err
}

// oldObjectOf returns the old object of a request; nil on CREATE.
func oldObjectOf(request *worker.Request) (object, error) {
	var found object
	_, err := request.OldObject(&found)
	return found, err
}

// isWritten reports whether the request writes an object: DELETE and CONNECT do not.
func isWritten(request *worker.Request) bool {
	return request.Operation == "CREATE" || request.Operation == "UPDATE"
}

// objectIn returns the object at a path; nil: none.
func objectIn(whole object, path ...string) object {
	for _, token := range path {
		whole, _ = whole[token].(object)
	}
	return whole
}

// listOf returns the array in a member; nil: it is not an array.
func listOf(whole object, name string) []any {
	found, _ := whole[name].([]any)
	return found
}

// textOf returns the string in a member; "": it is not a string.
func textOf(whole object, name string) string {
	found, _ := whole[name].(string)
	return found
}

// isEmpty reports whether a value is null, {}, [], "", 0 or false.
func isEmpty(value any) bool {
	switch found := value.(type) {
	case nil:
		return true
	case object:
		return len(found) == 0
	case []any:
		return len(found) == 0
	case json.Number:
		number, err := found.Float64()
		return err == nil && number == 0
	default:
		return value == "" || value == false
	}
}

// equal reports whether two JSON values are equal; 1 equals 1.0.
func equal(one, other any) bool {
	switch left := one.(type) {
	case object:
		right, is := other.(object)
		if !is || len(left) != len(right) {
			return false
		}
		for name, value := range left {
			if its, has := right[name]; !has || !equal(value, its) {
				return false
			}
		}
		return true
	case []any:
		right, is := other.([]any)
		if !is || len(left) != len(right) {
			return false
		}
		for index, value := range left {
			if !equal(value, right[index]) {
				return false
			}
		}
		return true
	case json.Number:
		right, is := other.(json.Number)
		return is && (left == right || sameNumber(string(left), string(right)))
	default:
		return reflect.DeepEqual(one, other)
	}
}

// longestNumber limits numbers that are compared exactly; the value of a large exponent would fill the memory.
const longestNumber = 64

func sameNumber(one, other string) bool {
	left, err := strconv.ParseFloat(one, 64)
	right, wrong := strconv.ParseFloat(other, 64)
	if err != nil || wrong != nil || left != right {
		return false
	}
	if len(one) > longestNumber || len(other) > longestNumber || strings.ContainsAny(one+other, "eE") {
		return true // as exact as a float is
	}
	exact, _ := new(big.Rat).SetString(one)
	its, _ := new(big.Rat).SetString(other)
	return exact.Cmp(its) == 0
}

// membersIn returns the JSON texts of the members of the object at a path; nil: none.
func membersIn(text json.RawMessage, path ...string) map[string]json.RawMessage {
	for depth := 0; ; depth++ {
		var members map[string]json.RawMessage
		if json.Unmarshal(text, &members) != nil || depth == len(path) {
			return members
		}
		text = members[path[depth]]
	}
}

// compact returns a JSON text without spaces, with members in their order, numbers as written, and strings as quoted
// writes them.
func compact(text json.RawMessage) string {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var made strings.Builder
	var places []int // of the next value in each object or array around: a comma goes before all but the first, a colon between a name and its value
	var inObject []bool
	for {
		token, err := decoder.Token()
		if err != nil {
			return made.String()
		}
		delimiter, is := token.(json.Delim)
		if last := len(places) - 1; last >= 0 && !(is && (delimiter == '}' || delimiter == ']')) {
			switch {
			case inObject[last] && places[last]%2 == 1:
				made.WriteByte(':')
			case places[last] > 0:
				made.WriteByte(',')
			}
			places[last]++
		}
		switch {
		case is && (delimiter == '{' || delimiter == '['):
			places, inObject = append(places, 0), append(inObject, delimiter == '{')
			made.WriteString(delimiter.String())
		case is:
			places, inObject = places[:len(places)-1], inObject[:len(inObject)-1]
			made.WriteString(delimiter.String())
		default:
			made.WriteString(scalar(token))
		}
	}
}

func scalar(token json.Token) string {
	switch value := token.(type) {
	case string:
		return quoted(value)
	case json.Number:
		return string(value)
	case bool:
		return strconv.FormatBool(value)
	default:
		return "null"
	}
}

// quoted returns a JSON string with only the escapes that JSON requires, so that messages are the same in every
// language. encoding/json would escape U+2028 and U+2029 too.
func quoted(text string) string {
	var made strings.Builder
	made.WriteByte('"')
	for _, character := range text {
		switch {
		case character == '"' || character == '\\':
			made.WriteByte('\\')
			made.WriteRune(character)
		case character < ' ':
			escaped, _ := json.Marshal(string(character))
			made.Write(bytes.Trim(escaped, `"`))
		default:
			made.WriteRune(character)
		}
	}
	made.WriteByte('"')
	return made.String()
}
