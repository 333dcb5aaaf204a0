// Package agnhost has the policies of agnhost, the reference webhook of Kubernetes' end-to-end tests: one for each
// route, named like the route, with - for /.
//
// The webhook's status.message and status.reason are the message and reason of the denial. The webhook sets no code,
// for which the API server uses 400, so the code here is 400. If the webhook's handler crashes, the policy panics:
// both are a failed call. If the webhook returns the error of a Go decoder, the policy returns the same text.
package agnhost

import (
	"context"
	"fmt"
	"time"

	"admission-gateway.dev/worker"
)

// Name and Version are those of the worker.
const (
	Name    = "agnhost"
	Version = "0.1.0"
)

// Policies returns all policies.
func Policies() []worker.Registration {
	return []worker.Registration{
		alwaysAllowDelay, alwaysDeny, addLabel,
		pods, podsAttach, mutatingPods, mutatingPodsSidecar,
		configMaps, mutatingConfigMaps, customResource, mutatingCustomResource, customResourceDefinitions,
	}
}

// denied returns a denial as of the webhook: with a message, and no reason.
func denied(message string) worker.Answer { return worker.Deny(message).WithCode(400).WithReason("") }

// deniedFor returns a denial whose text is in the reason.
func deniedFor(reason string) worker.Answer { return worker.Deny("").WithCode(400).WithReason(reason) }

// resourceOf returns the resource of a request; the zero value: none.
func resourceOf(request *worker.Request) worker.GroupVersionResource {
	if request.Resource == nil {
		return worker.GroupVersionResource{}
	}
	return *request.Resource
}

// crash panics as the webhook does for another resource: its handler returns nil, and the caller dereferences it.
func crash(expected worker.GroupVersionResource) {
	panic(fmt.Sprintf("expect resource to be %v", expected))
}

type delaySettings struct {
	Seconds *float64 `json:"seconds,omitempty"`
}

const defaultDelay = 5.0

var alwaysAllowDelay = worker.Policy[delaySettings]{
	Name: "always-allow-delay-5s", Phase: worker.Validating,
	Description: "Allows all requests, after 5 seconds or those of its settings.",
	Check: func(settings delaySettings, findings *worker.Findings) {
		if settings.Seconds != nil && *settings.Seconds < 0 {
			findings.Error("/seconds", "must not be negative")
		}
	},
	Judge: func(ctx context.Context, _ *worker.Request, settings delaySettings) (worker.Answer, error) {
		seconds := defaultDelay
		if settings.Seconds != nil {
			seconds = *settings.Seconds
		}
		timer := time.NewTimer(time.Duration(seconds * float64(time.Second)))
		defer timer.Stop()
		select {
		case <-timer.C:
			return worker.Allow(), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	},
}

var alwaysDeny = worker.Policy[worker.NoSettings]{
	Name: "always-deny", Phase: worker.Validating,
	Description: "Denies all requests.",
	Judge: func(context.Context, *worker.Request, worker.NoSettings) (worker.Answer, error) {
		return denied("this webhook denies all requests"), nil
	},
}
