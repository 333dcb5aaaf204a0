package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	kubejson "sigs.k8s.io/json"
)

// The document that a policy judges: a part of a Kubernetes AdmissionRequest.
//
// A document holds what the operator granted and the policy claimed, so every member may be missing: then it reads
// as its zero value, like a member that is null. (Kubernetes leaves name, namespace and subResource out when they
// are empty, and sends null for an object that there is not, as on DELETE.) Objects stay JSON text until a policy
// asks for them, in the type that it wants.
//
// Kubernetes' members are case-sensitive, which encoding/json is not: whoever may write "Spec" besides "spec" into
// an object would choose which of them a struct shows. So structs are read as the API server reads them
// (sigs.k8s.io/json), and maps keep each number as it is written.

// GroupVersionKind is a metav1.GroupVersionKind. The core group is "".
type GroupVersionKind struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

// GroupVersionResource is a metav1.GroupVersionResource. The core group is "".
type GroupVersionResource struct {
	Group    string `json:"group"`
	Version  string `json:"version"`
	Resource string `json:"resource"`
}

// UserInfo is an authentication.k8s.io/v1 UserInfo: who calls.
type UserInfo struct {
	Username string              `json:"username"`
	UID      string              `json:"uid"`
	Groups   []string            `json:"groups"`
	Extra    map[string][]string `json:"extra"`
}

// Request is one document.
type Request struct {
	// UID is the AdmissionRequest's, for logs. A verdict must not depend on it: it differs in each call.
	UID string `json:"-"`
	// Raw is the whole document as it was sent. Policies that judge the same document share it: do not write to it.
	Raw json.RawMessage `json:"-"`

	// Operation is CREATE, UPDATE, DELETE or CONNECT.
	Operation string `json:"operation"`
	// Kind is that of the object: for a subresource its own, such as Scale or Eviction.
	Kind *GroupVersionKind `json:"kind"`
	// Resource is what is asked for, in the version that the policy matched.
	Resource *GroupVersionResource `json:"resource"`
	// SubResource is such as status or ephemeralcontainers; empty: the resource itself.
	SubResource string `json:"subResource"`
	// RequestKind, RequestResource and RequestSubResource are in the version in which the client called (they differ
	// under matchPolicy Equivalent).
	RequestKind        *GroupVersionKind     `json:"requestKind"`
	RequestResource    *GroupVersionResource `json:"requestResource"`
	RequestSubResource string                `json:"requestSubResource"`
	// Name is the object's; empty where the API server makes it (generateName, mutating), and on a deletecollection.
	Name string `json:"name"`
	// Namespace is empty for cluster-scoped objects, and a Namespace's own name for Namespaces.
	Namespace string `json:"namespace"`
	// UserInfo is who calls.
	UserInfo *UserInfo `json:"userInfo"`
	// DryRun says whether nothing will be stored.
	DryRun *bool `json:"dryRun"`

	// RawObject and its kin are the texts of what Object and its kin decode; empty or null where there is none.
	RawObject          json.RawMessage `json:"object"`
	RawOldObject       json.RawMessage `json:"oldObject"`
	RawOptions         json.RawMessage `json:"options"`
	RawNamespaceObject json.RawMessage `json:"namespaceObject"`
}

// newRequest reads a document, all but its objects.
func newRequest(raw []byte, uid string) (*Request, error) {
	request := &Request{}
	if !utf8.Valid(raw) {
		return nil, &InvalidDocumentError{"the document is not one JSON object: it is no UTF-8"}
	}
	if kind := kindOf(raw); kind != "an object" {
		return nil, &InvalidDocumentError{"the document is not one JSON object: it is " + kind}
	}
	if err := kubejson.UnmarshalCaseSensitivePreserveInts(raw, request); err != nil {
		return nil, &InvalidDocumentError{"the document cannot be read: " + withoutValues(err)}
	}
	request.UID, request.Raw = uid, raw
	return request, nil
}

// String is how large and for which log line; never the content, which may be a Secret.
func (r *Request) String() string {
	return fmt.Sprintf("Request of %d bytes, uid %q", len(r.Raw), r.UID)
}

// Object decodes the object as it would be stored into what into points to: a type of k8s.io/api such as
// *corev1.Pod, a struct of your own with what you need of it, or *map[string]any, whose numbers are json.Number and
// stay as they are written.
//
// It returns false if there is none (DELETE) or it was not granted. The error is an [InvalidDocumentError]: return
// it, and the policy has failed.
func (r *Request) Object(into any) (bool, error) { return decoded(r.RawObject, into, "object") }

// OldObject decodes the object as it is stored, as Object does; none on CREATE and CONNECT.
func (r *Request) OldObject(into any) (bool, error) {
	return decoded(r.RawOldObject, into, "oldObject")
}

// Options decodes the operation's options, such as a CreateOptions, as Object does.
func (r *Request) Options(into any) (bool, error) { return decoded(r.RawOptions, into, "options") }

// NamespaceObject decodes the Namespace (its name and labels), as Object does, for a policy that names
// /namespaceObject in its inputs.
func (r *Request) NamespaceObject(into any) (bool, error) {
	return decoded(r.RawNamespaceObject, into, "namespaceObject")
}

// Document decodes the whole document, in the AdmissionRequest's own shape, as Object does.
func (r *Request) Document(into any) error {
	_, err := decoded(r.Raw, into, "document")
	return err
}

func decoded(text json.RawMessage, into any, what string) (bool, error) {
	if kindOf(text) == "null" || len(text) == 0 {
		return false, nil
	}
	var err error
	switch into.(type) {
	case *map[string]any, *any:
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		err = decoder.Decode(into)
	default:
		err = kubejson.UnmarshalCaseSensitivePreserveInts(text, into)
	}
	if err != nil {
		return false, &InvalidDocumentError{fmt.Sprintf("the document's %s cannot be read: %s", what, withoutValues(err))}
	}
	return true, nil
}

// withoutValues is what a JSON decoder says, as far as it holds no value of the document.
func withoutValues(err error) string {
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		return fmt.Sprintf("the value at byte %d is not of type %s", wrongType.Offset, wrongType.Type)
	}
	var noJSON *json.SyntaxError
	if errors.As(err, &noJSON) {
		return fmt.Sprintf("no JSON at byte %d", noJSON.Offset)
	}
	if known, offset := kubejson.SyntaxErrorOffset(err); known {
		return fmt.Sprintf("no JSON at byte %d", offset)
	}
	return fmt.Sprintf("%T", err)
}

// kindOf is what a JSON text begins to be, for messages.
func kindOf(text []byte) string {
	text = bytes.TrimLeft(text, " \t\r\n")
	if len(text) == 0 {
		return "empty"
	}
	switch text[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return "a number"
	default:
		return "no JSON"
	}
}
