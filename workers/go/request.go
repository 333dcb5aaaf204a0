package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	kubejson "sigs.k8s.io/json"
)

// The document of a policy call: a part of a Kubernetes AdmissionRequest.
//
// A document holds the fields that the operator granted and the policy claimed, so every member may be absent. An
// absent or null member is its zero value. (Kubernetes omits name, namespace and subResource if they are empty, and
// sends null for an object that does not exist, as on DELETE.) Objects stay JSON text until a policy decodes them.
//
// Field names in Kubernetes are case-sensitive; in encoding/json they are not: a client that adds "Spec" to an object
// with "spec" could choose which of them a policy sees. So structs are decoded as in the API server
// (sigs.k8s.io/json), and maps keep the text of numbers.

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

// UserInfo is an authentication.k8s.io/v1 UserInfo: the client of the API server.
type UserInfo struct {
	Username string              `json:"username"`
	UID      string              `json:"uid"`
	Groups   []string            `json:"groups"`
	Extra    map[string][]string `json:"extra"`
}

// Request is the document of one policy call.
type Request struct {
	// UID is the uid of the AdmissionRequest, for logs. A verdict must not depend on it: it differs in each request.
	UID string `json:"-"`
	// Raw is the whole document as it was received. Calls with the same document share it: do not modify it.
	Raw json.RawMessage `json:"-"`

	// Operation is CREATE, UPDATE, DELETE or CONNECT.
	Operation string `json:"operation"`
	// Kind is the kind of the object; for a subresource its own, such as Scale or Eviction.
	Kind *GroupVersionKind `json:"kind"`
	// Resource is the requested resource, in the version that the rules matched.
	Resource *GroupVersionResource `json:"resource"`
	// SubResource is for example status or ephemeralcontainers; empty: the resource itself.
	SubResource string `json:"subResource"`
	// RequestKind, RequestResource and RequestSubResource are those of the client's original request (they differ
	// under matchPolicy Equivalent).
	RequestKind        *GroupVersionKind     `json:"requestKind"`
	RequestResource    *GroupVersionResource `json:"requestResource"`
	RequestSubResource string                `json:"requestSubResource"`
	// Name is the name of the object; empty if the API server has not generated it yet (generateName, mutating
	// phase), and on deletecollection.
	Name string `json:"name"`
	// Namespace is empty for cluster-scoped objects; for a Namespace it is its own name.
	Namespace string `json:"namespace"`
	// UserInfo is the client of the API server.
	UserInfo *UserInfo `json:"userInfo"`
	// DryRun reports whether the API server will not store the object.
	DryRun *bool `json:"dryRun"`

	// RawObject, RawOldObject, RawOptions and RawNamespaceObject are the JSON texts behind the methods; empty or null
	// if there is none.
	RawObject          json.RawMessage `json:"object"`
	RawOldObject       json.RawMessage `json:"oldObject"`
	RawOptions         json.RawMessage `json:"options"`
	RawNamespaceObject json.RawMessage `json:"namespaceObject"`
}

// newRequest decodes a document, except its objects.
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

// String returns the size and the uid; never the content, which may be a Secret.
func (r *Request) String() string {
	return fmt.Sprintf("Request of %d bytes, uid %q", len(r.Raw), r.UID)
}

// Object decodes the new object into the value that into points to: a type of k8s.io/api such as *corev1.Pod, a
// struct of your own with the fields that you need, or *map[string]any, in which numbers are json.Number and keep
// their text.
//
// It returns false if there is no object (DELETE) or it is not granted. The error is an [InvalidDocumentError]; a
// policy returns it, and the call is a failure.
func (r *Request) Object(into any) (bool, error) { return decoded(r.RawObject, into, "object") }

// OldObject decodes the stored object, like Object; none on CREATE and CONNECT.
func (r *Request) OldObject(into any) (bool, error) {
	return decoded(r.RawOldObject, into, "oldObject")
}

// Options decodes the operation's options, such as a CreateOptions, like Object.
func (r *Request) Options(into any) (bool, error) { return decoded(r.RawOptions, into, "options") }

// NamespaceObject decodes the Namespace (its name and labels), like Object, for a policy with /namespaceObject in its
// inputs.
func (r *Request) NamespaceObject(into any) (bool, error) {
	return decoded(r.RawNamespaceObject, into, "namespaceObject")
}

// Document decodes the whole document, in the form of an AdmissionRequest, like Object.
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

// withoutValues describes an error of a JSON decoder without values of the document.
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

// kindOf returns the kind of a JSON text by its first character, for messages.
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
