package samples

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"admission-gateway.dev/worker"
)

// no-privileged denies privileged containers, init and ephemeral containers included.
//
// It checks Pods (with their ephemeralcontainers) and Pod templates, so that the client that creates a Deployment
// sees the denial. It ignores a container that was privileged before, with the same image: the UPDATE does not add
// it, and a denial would prevent labels on old Pods and their deletion. Pods from an old template are still checked.

// NoPrivilegedSettings are the settings of no-privileged.
type NoPrivilegedSettings struct {
	// ExemptImages are globs of images that may run privileged, compared with the image as written. * also matches
	// slashes, as in registry.example.com/agents/*.
	ExemptImages []string `json:"exemptImages,omitempty"`
}

// NoPrivileged is the policy.
var NoPrivileged = worker.Policy[NoPrivilegedSettings]{
	Name:        "no-privileged",
	Phase:       worker.Validating,
	Judge:       noPrivileged,
	Inputs:      worker.Pointers(claimsOn(allLists, []string{"name", "image", "securityContext/privileged"})...),
	Description: "Denies privileged containers in Pods and in the templates of what creates Pods.",
}

func noPrivileged(_ context.Context, request *worker.Request, settings NoPrivilegedSettings) (worker.Answer, error) {
	if !isWritten(request) {
		return nil, nil
	}
	found, err := containersOf(request, allLists)
	if err != nil {
		return nil, err
	}
	var causes []worker.Cause
	var messages []string
	for _, one := range found {
		image := textOf(one.value, "image")
		if !isPrivileged(one.value) || wasPrivileged(one) ||
			slices.ContainsFunc(settings.ExemptImages, func(glob string) bool { return globMatches(glob, image) }) {
			continue
		}
		message := fmt.Sprintf("%s (%s, image %s)", one.field(), quoted(textOf(one.value, "name")), quoted(image))
		causes = append(causes, worker.Cause{Field: one.field() + ".securityContext.privileged", Message: message, Reason: "FieldValueForbidden"})
		messages = append(messages, message)
	}
	if len(causes) == 0 {
		return nil, nil
	}
	return worker.Deny("privileged containers are not allowed: " + strings.Join(messages, "; ")).WithCauses(causes...), nil
}

func isPrivileged(container object) bool {
	return objectIn(container, "securityContext")["privileged"] == true
}

func wasPrivileged(one container) bool {
	return one.before != nil && isPrivileged(one.before) && equal(one.before["image"], one.value["image"])
}
