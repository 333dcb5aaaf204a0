package samples

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strings"
	"testing"
)

func TestGlobsMatchAsInAShell(t *testing.T) {
	cases := []struct {
		glob, text string
		matches    bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "a/b\nc", true}, {"a*c", "abbc", true}, {"a*c", "abbd", false},
		{"a*b*c", "a-b-b-c", true}, {"**", "x", true}, {"?", "ü", true}, {"?", "", false}, {"[abc]", "b", true}, {"[!abc]", "b", false},
		{"[!abc]", "d", true}, {"[a-c]x", "bx", true}, {"[c-a]", "b", false}, {"[!c-a]", "b", true}, {"[a-]", "-", true}, {"[-a]", "-", true},
		{"[]]", "]", true}, {"[!]]", "]", false}, {"[!]]", "a", true}, {"[", "[", true}, {"[a", "[a", true}, {"[]", "[]", true}, {"a[", "a", false},
		{"[^a]", "^", true}, {"[^a]", "b", false}, {"a.c", "abc", false}, {"A", "a", false}, {"*.example.com/[0-9]*:v?", "x.example.com/7a/b:v1", true},
		{strings.Repeat("*a", 50), strings.Repeat("a", 40), false},
	}
	for _, one := range cases {
		if found := globMatches(one.glob, one.text); found != one.matches {
			t.Errorf("%q and %q: %v", one.glob, one.text, found)
		}
	}
}

func TestQuantitiesAreThoseOfKubernetes(t *testing.T) {
	for written, wanted := range map[string]string{
		"0": "0", "1": "1", "1.": "1", ".5": "1/2", "+1": "1", "-1": "-1", "100m": "1/10", "1k": "1000", "1Ki": "1024", "1Ei": "1152921504606846976",
		"1e3": "1000", "1E-3": "1/1000", "1E": "1000000000000000000", "1n": "1/1000000000", "0.1n": "1/1000000000", "-0.1n": "-1/1000000000", "0.0": "0",
		"9Ei": "9223372036854775807", "-9Ei": "-9223372036854775807", "1e999999999": "9223372036854775807", "1e-999999999": "1/1000000000", "1u": "1/1000000",
	} {
		expected, _ := new(big.Rat).SetString(wanted)
		if found, err := quantity(written); err != nil || found.Cmp(expected) != 0 {
			t.Errorf("%s: %v %v", written, found, err)
		}
	}
	for _, written := range []string{"", "x", "1x", "1 ", "1ki", "1mi", "e3", "1e", "1e1.5", "--1", "1\n", strings.Repeat("1", 129), "1e1234567890"} {
		if found, err := quantity(written); err == nil || !strings.HasSuffix(err.Error(), "is no quantity such as 100m, 0.5 or 1Gi") {
			t.Errorf("%q: %v %v", written, found, err)
		}
	}
}

func TestTextsAreQuotedAsJSONDoesWithoutFurtherEscapes(t *testing.T) {
	for text, wanted := range map[string]string{
		"a\"b\\": `"a\"b\\"`, "<ü\u2028>": "\"<ü\u2028>\"", "\n\t\x01\x7f": "\"\\n\\t\\u0001\x7f\"",
	} {
		if found := quoted(text); found != wanted {
			t.Errorf("%q: %s", text, found)
		}
	}
}

func TestValuesAreEqualAsJSONIs(t *testing.T) {
	cases := []struct {
		one, other string
		same       bool
	}{
		{`{"a":1,"b":[1.0]}`, `{"b":[1],"a":1.00}`, true}, {`1`, `"1"`, false}, {`9007199254740993`, `9007199254740992`, false},
		{`1e400`, `1e400`, true}, {`[1]`, `[1,1]`, false}, {`{"a":null}`, `{}`, false}, {`1e2`, `100`, true},
	}
	for _, one := range cases {
		var left, right ordered[amountless]
		if err := left.UnmarshalJSON([]byte(`{"x":` + one.one + `}`)); err != nil {
			t.Fatal(err)
		}
		if err := right.UnmarshalJSON([]byte(`{"x":` + one.other + `}`)); err != nil {
			t.Fatal(err)
		}
		if found := equal(left.entries[0].value.value, right.entries[0].value.value); found != one.same {
			t.Errorf("%s and %s: %v", one.one, one.other, found)
		}
	}
}

// amountless is any value, its numbers as they are written.
type amountless struct{ value any }

func (a *amountless) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(&a.value)
}
