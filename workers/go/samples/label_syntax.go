package samples

import (
	"regexp"
	"strings"
)

// The syntax of label keys and values in Kubernetes (k8s.io/apimachinery/pkg/util/validation).
//
// A key is an optional prefix and a name: "name part must consist of alphanumeric characters, '-', '_' or '.', and
// must start and end with an alphanumeric character" in at most 63 characters; the prefix is a DNS-1123 subdomain of
// at most 253. A value is empty or a name.

var (
	labelName = regexp.MustCompile(`\A[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\z`)
	subdomain = regexp.MustCompile(`\A[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\z`)
)

const subdomainCharacters = 253

// isLabelKey reports whether a text is a valid label key, such as team or app.kubernetes.io/name.
func isLabelKey(key string) bool {
	name := key
	if slash := strings.LastIndexByte(key, '/'); slash >= 0 {
		prefix := key[:slash]
		if len(prefix) > subdomainCharacters || !subdomain.MatchString(prefix) {
			return false
		}
		name = key[slash+1:]
	}
	return labelName.MatchString(name)
}

// isLabelValue reports whether a text is a valid label value.
func isLabelValue(value string) bool { return value == "" || labelName.MatchString(value) }
