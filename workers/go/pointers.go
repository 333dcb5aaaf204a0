package worker

import (
	"fmt"
	"regexp"
	"strings"
)

// JSON Pointers (RFC 6901), which name fields in claims, patches and errors.
//
// "The token "~" is encoded as "~0" and "/" as "~1": RFC 6901, section 3. In claims a token * matches every element
// or member, so a member named * cannot be claimed alone.

// mostPointers limits the pointers of one claim, and the tokens of one pointer: the gateway accepts no more, and no
// request is nested deeper.
const mostPointers = 256

var (
	validPointer = regexp.MustCompile(`\A(?:/(?:[^~/]|~[01])*)+\z`)
	escaping     = strings.NewReplacer("~", "~0", "/", "~1")
	unescaping   = strings.NewReplacer("~1", "/", "~0", "~")
)

// Pointer returns the JSON Pointer of these keys and indexes, with escapes: Pointer("metadata", "labels", "a/b") is
// /metadata/labels/a~1b.
func Pointer(tokens ...any) string {
	var made strings.Builder
	for _, token := range tokens {
		made.WriteByte('/')
		made.WriteString(escaping.Replace(fmt.Sprint(token)))
	}
	return made.String()
}

// tokensOf returns the tokens of a valid pointer, without escapes: ["a/b", "0"] for /a~1b/0.
func tokensOf(pointer string) []string {
	tokens := strings.Split(pointer, "/")[1:]
	for index, token := range tokens {
		tokens[index] = unescaping.Replace(token)
	}
	return tokens
}

// checkedPointers validates claimed pointers and removes duplicates: authors compose claims from lists, and the
// gateway rejects duplicates. Errors begin with what.
func checkedPointers(claimed []string, what string) ([]string, error) {
	var kept []string
	seen := map[string]bool{}
	for _, pointer := range claimed {
		if !validPointer.MatchString(pointer) {
			hint := ""
			if pointer == "" {
				hint = "; everything is spelt Everything"
			}
			return nil, fmt.Errorf("%s: %q is no JSON Pointer such as \"/object/metadata/labels\"%s", what, pointer, hint)
		}
		if strings.Count(pointer, "/") > mostPointers {
			return nil, fmt.Errorf("%s: %.80q... has more than %d segments, and no request is nested so deep", what, pointer, mostPointers)
		}
		if !seen[pointer] {
			seen[pointer] = true
			kept = append(kept, pointer)
		}
	}
	if len(kept) > mostPointers {
		return nil, fmt.Errorf("%s: at most %d pointers, there are %d; claim what holds several of them", what, mostPointers, len(kept))
	}
	return kept, nil
}
