// Package worker serves Kubernetes admission policies, written as Go functions, to the admission gateway over gRPC.
//
// A policy is a value of type [Policy]: a name, a phase, a function and its claims. [Main] is the command that serves
// policies; [New] and [Worker.Serve] serve them inside a program. The function gets a [Request] and settings of its
// own type, and returns an [Answer] or an error. An error is not a verdict: then the operator's failurePolicy
// decides.
package worker
