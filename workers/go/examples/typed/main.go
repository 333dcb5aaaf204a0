// Command typed serves a policy that reads Pods in the types of k8s.io/api. It is a module of its own, so that the
// SDK does not depend on k8s.io/api.
package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"admission-gateway.dev/worker"
)

// runAsRoot denies containers that may run as root. A container without the field has the value of its Pod.
var runAsRoot = worker.Policy[worker.NoSettings]{
	Name:  "run-as-root",
	Phase: worker.Validating,
	Inputs: worker.Pointers(
		"/object/spec/securityContext/runAsNonRoot",
		"/object/spec/containers/*/name",
		"/object/spec/containers/*/securityContext/runAsNonRoot",
	),
	Description: "Denies containers that may run as root.",
	Judge: func(_ context.Context, request *worker.Request, _ worker.NoSettings) (worker.Answer, error) {
		var pod corev1.Pod
		if is, err := request.Object(&pod); !is {
			return nil, err
		}
		var names []string
		var causes []worker.Cause
		for index, container := range pod.Spec.Containers {
			if !mayBeRoot(pod.Spec, container) {
				continue
			}
			names = append(names, container.Name)
			causes = append(causes, worker.Cause{
				Field:   fmt.Sprintf("spec.containers[%d].securityContext.runAsNonRoot", index),
				Message: "must be true",
			})
		}
		if len(causes) == 0 {
			return worker.Allow(), nil
		}
		return worker.Deny("containers may run as root: " + strings.Join(names, ", ")).WithCauses(causes...), nil
	},
}

func mayBeRoot(spec corev1.PodSpec, container corev1.Container) bool {
	if own := container.SecurityContext; own != nil && own.RunAsNonRoot != nil {
		return !*own.RunAsNonRoot
	}
	shared := spec.SecurityContext
	return shared == nil || shared.RunAsNonRoot == nil || !*shared.RunAsNonRoot
}

func main() { worker.Main("typed", "0.1.0", runAsRoot) }
