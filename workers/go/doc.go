// Package worker lets you write a Kubernetes admission policy as a Go function, and serves it to the admission gateway
// over gRPC.
//
// A policy is a value of type [Policy]: a name, a phase, a function and what it claims. [Main] is the command that
// serves policies; [New] and [Worker.Serve] do so inside a program. The function gets a [Request] and settings of
// its own type, and returns an [Answer] or an error. An error is not a verdict: the operator's failurePolicy
// decides then.
package worker
