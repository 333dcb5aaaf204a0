// Package agnhost has the policies that Kubernetes' own end-to-end tests expect of an admission webhook: those of
// its reference image, agnhost, one for each route and named as it, with - for /.
//
// What the webhook puts into status.message or status.reason is the denial's message or reason. It gives no code,
// and the API server makes 400 of none; so the code here is 400, and the reason what the webhook says, mostly
// nothing. Where the webhook's handler crashes, the policy panics: both are a failed call. Where the webhook gives
// back the error of a Go decoder, so do these, word by word.
package agnhost

import (
	"context"
	"fmt"
	"time"

	"admission-gateway.dev/worker"
)

// Name and Version are the worker's.
const (
	Name    = "agnhost"
	Version = "0.1.0"
)

// Policies are all of them.
func Policies() []worker.Registration {
	return []worker.Registration{
		alwaysAllowDelay, alwaysDeny, addLabel,
		pods, podsAttach, mutatingPods, mutatingPodsSidecar,
		configMaps, mutatingConfigMaps, customResource, mutatingCustomResource, customResourceDefinitions,
	}
}

// denied as the webhook denies: with a message, and no reason.
func denied(message string) worker.Answer { return worker.Deny(message).WithCode(400).WithReason("") }

// deniedFor is a denial whose sentence is in the reason.
func deniedFor(reason string) worker.Answer { return worker.Deny("").WithCode(400).WithReason(reason) }

// resourceOf a request; the zero value where there is none.
func resourceOf(request *worker.Request) worker.GroupVersionResource {
	if request.Resource == nil {
		return worker.GroupVersionResource{}
	}
	return *request.Resource
}

// crash is what the webhook does about a foreign resource: it returns nil, which the caller follows.
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
