package worker

import (
	"fmt"
	"slices"
	"strings"

	"admission-gateway.dev/worker/workerv1"
)

// Claims: which fields a policy reads and writes. A claim is everything, a list of pointers, or unset. The contract
// distinguishes all three.
//
// A claim can only narrow what the operator granted. A policy whose claim is unset gets all that is granted;
// "nothing" is an empty list. Claims that the gateway would reject are rejected here, where the author sees it.

// Claim is a set of fields. The zero value is unset: all that the operator grants.
type Claim struct {
	everything bool
	listed     bool
	pointers   []string
}

// Everything claims all fields.
var Everything = Claim{everything: true}

// Nothing claims no fields: the policy needs only the operation and the kind.
var Nothing = Pointers()

// Pointers claims these fields, as JSON Pointers such as /object/metadata/labels. A segment * matches every element
// or member.
func Pointers(pointers ...string) Claim { return Claim{listed: true, pointers: pointers} }

// requestMembers are the first segments of inputs: the members of an AdmissionRequest (admission.k8s.io/v1) except
// uid, and the Namespace, which the gateway adds for policies that claim it.
var requestMembers = []string{
	"kind", "resource", "subResource", "requestKind", "requestResource", "requestSubResource", "name", "namespace",
	"operation", "userInfo", "object", "oldObject", "dryRun", "options", "namespaceObject",
}

// checkedInputs validates pointers over an AdmissionRequest.
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

// checkedWrites validates pointers over an object. A policy cannot change the kind of an object.
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

// message encodes the claim; nil: it is unset.
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
