package worker

import (
	"fmt"
	"slices"
	"strings"

	"admission-gateway.dev/worker/workerv1"
)

// Which places a policy reads and writes: everything, exactly these, or not said. Three different things in the
// contract.
//
// A claim can only narrow what the operator granted. "Not said" is sent whatever was granted; "nothing" is an empty
// list. What the gateway would refuse is refused here, where the author sees it.

// Claim is a set of places. The zero value says nothing: whatever the operator grants.
type Claim struct {
	everything bool
	listed     bool
	pointers   []string
}

// Everything claims every place there is.
var Everything = Claim{everything: true}

// Nothing claims no place: the operation and the kind are enough.
var Nothing = Pointers()

// Pointers claims exactly these places, as JSON Pointers such as /object/metadata/labels; a segment * is every
// element or member.
func Pointers(pointers ...string) Claim { return Claim{listed: true, pointers: pointers} }

// requestMembers is what an input can begin with: the members of an AdmissionRequest (admission.k8s.io/v1) but uid,
// and the Namespace, which the gateway adds for whoever names it.
var requestMembers = []string{
	"kind", "resource", "subResource", "requestKind", "requestResource", "requestSubResource", "name", "namespace",
	"operation", "userInfo", "object", "oldObject", "dryRun", "options", "namespaceObject",
}

// checkedInputs are places of an AdmissionRequest.
func checkedInputs(claim Claim, what string) (Claim, error) {
	pointers, err := checkedPointers(claim.pointers, what)
	if err != nil {
		return claim, err
	}
	for _, pointer := range pointers {
		switch first := tokensOf(pointer)[0]; {
		case first == "uid":
			return claim, fmt.Errorf("%s: no verdict may depend on \"/uid\", which is not part of a document", what)
		case !slices.Contains(requestMembers, first):
			return claim, fmt.Errorf("%s: %q is no place in an AdmissionRequest, which has %s", what, pointer, strings.Join(requestMembers, ", "))
		}
	}
	claim.pointers = pointers
	return claim, nil
}

// checkedWrites are places of an object, what kind of object it is excepted: another kind of object is no changed
// object.
func checkedWrites(claim Claim, what string) (Claim, error) {
	pointers, err := checkedPointers(claim.pointers, what)
	if err != nil {
		return claim, err
	}
	for _, pointer := range pointers {
		if first := tokensOf(pointer)[0]; first == "apiVersion" || first == "kind" || pointer == "/*" {
			return claim, fmt.Errorf("%s: %q is or holds the object's kind, which cannot be changed; name other members", what, pointer)
		}
	}
	claim.pointers = pointers
	return claim, nil
}

// message is the claim in the contract's words; nil where it is not said, which leaves the field unset.
func (c Claim) message() *workerv1.Claim {
	switch {
	case c.everything:
		return &workerv1.Claim{Claim: &workerv1.Claim_Everything_{Everything: &workerv1.Claim_Everything{}}}
	case c.listed:
		return &workerv1.Claim{Claim: &workerv1.Claim_Pointers_{Pointers: &workerv1.Claim_Pointers{Pointers: c.pointers}}}
	default:
		return nil
	}
}
