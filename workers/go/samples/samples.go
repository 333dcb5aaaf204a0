// Package samples has useful policies, each in its own file, as examples.
//
// They are pure functions of their documents, claim what they read, and are idempotent: called again with an object
// that they have changed, they change nothing. Policies for containers ignore what an UPDATE does not change: most of
// a Pod is immutable, and an annotation on a Deployment must not cause a rollout.
package samples

import "admission-gateway.dev/worker"

// Name and Version are the sample worker's.
const (
	Name    = "samples"
	Version = "0.1.0"
)

// Policies returns all policies.
func Policies() []worker.Registration {
	return []worker.Registration{DefaultLabels, DefaultResources, ImageRegistry, NoPrivileged, RequiredLabels, Sidecar}
}
