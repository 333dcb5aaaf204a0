// Package samples has policies that are worth having, each in a file of its own, to learn from.
//
// All of them are pure functions of their documents, claim what they read, and are idempotent: called again about an
// object that they have changed, they change nothing. Those which look into containers leave alone what an UPDATE
// did not bring: most of a Pod is immutable, and nobody who sets an annotation on a Deployment expects a rollout.
package samples

import "admission-gateway.dev/worker"

// Name and Version are the sample worker's.
const (
	Name    = "samples"
	Version = "0.1.0"
)

// Policies are all of them.
func Policies() []worker.Registration {
	return []worker.Registration{DefaultLabels, DefaultResources, ImageRegistry, NoPrivileged, RequiredLabels, Sidecar}
}
