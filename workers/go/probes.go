package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/propagation"
)

// The probe policies for the conformance kit, not for production. workers/README.md specifies them for all languages.

// cancelledKept is the number of tokens of cancelled sleeps that are kept, the latest ones.
const cancelledKept = 1000

func probes() []Registration {
	cancelled := &tokens{}
	return []Registration{
		probeAnswer, probeMisuse, probeEcho, probeSleep(cancelled), probeCancelled(cancelled),
		probePanic, probeFlood, probeSettings, probeLabel, probeVersion,
	}
}

var probeMisuse = Policy[NoSettings]{
	Name: "probe-misuse", Phase: Validating,
	Description: "Returns a change, which its phase does not allow.",
	Judge:       func(context.Context, *Request, NoSettings) (Answer, error) { return patchedByProbe(), nil },
}

var probeEcho = Policy[NoSettings]{
	Name: "probe-echo", Phase: Validating, Inputs: Everything,
	Description: "Denies with the document that it was sent.",
	Judge: func(ctx context.Context, request *Request, _ NoSettings) (Answer, error) {
		carrier := propagation.MapCarrier{}
		traceContext.Inject(ctx, carrier)
		return Deny(string(request.Raw)).WithCode(422).
			WithAuditAnnotation("uid", request.UID).WithAuditAnnotation("traceparent", carrier["traceparent"]), nil
	},
}

type sleepSettings struct {
	Seconds float64 `json:"seconds"`
	Token   string  `json:"token,omitempty"`
}

func probeSleep(cancelled *tokens) Registration {
	return Policy[sleepSettings]{
		Name: "probe-sleep", Phase: Validating, Inputs: Nothing,
		Description: "Waits and allows; records a cancellation.",
		Judge: func(ctx context.Context, _ *Request, settings sleepSettings) (Answer, error) {
			timer := time.NewTimer(time.Duration(settings.Seconds * float64(time.Second)))
			defer timer.Stop()
			select {
			case <-timer.C:
				return nil, nil
			case <-ctx.Done():
				cancelled.add(settings.Token)
				return nil, ctx.Err()
			}
		},
	}
}

type tokenSettings struct {
	Token string `json:"token,omitempty"`
}

func probeCancelled(cancelled *tokens) Registration {
	return Policy[tokenSettings]{
		Name: "probe-cancelled", Phase: Validating, Inputs: Nothing,
		Description: "Reports whether the probe-sleep with a token was cancelled.",
		Judge: func(_ context.Context, _ *Request, settings tokenSettings) (Answer, error) {
			return Allow().WithAuditAnnotation("cancelled", fmt.Sprint(cancelled.has(settings.Token))), nil
		},
	}
}

var probePanic = Policy[NoSettings]{
	Name: "probe-panic", Phase: Validating, Inputs: Nothing,
	Description: "Panics.",
	Judge: func(context.Context, *Request, NoSettings) (Answer, error) {
		panic("a secret that must not travel")
	},
}

type floodSettings struct {
	Bytes uint32 `json:"bytes"`
}

var probeFlood = Policy[floodSettings]{
	Name: "probe-flood", Phase: Validating, Inputs: Nothing,
	Description: "Denies with a long message.",
	Judge: func(_ context.Context, _ *Request, settings floodSettings) (Answer, error) {
		return Deny(strings.Repeat("x", int(settings.Bytes))), nil
	},
}

type oddSettings struct {
	Odd        int64  `json:"odd"`
	Name       string `json:"name,omitempty"`
	Deprecated *bool  `json:"deprecated,omitempty"`
}

var probeSettings = Policy[oddSettings]{
	Name: "probe-settings", Phase: Validating, Inputs: Nothing,
	Description: "Allows; it is about its settings.",
	Judge:       func(context.Context, *Request, oddSettings) (Answer, error) { return nil, nil },
	Check: func(settings oddSettings, findings *Findings) {
		if settings.Odd%2 == 0 {
			findings.Error("/odd", fmt.Sprintf("must be odd, is %d", settings.Odd))
		}
		if settings.Deprecated != nil {
			findings.Warn("deprecated goes away")
		}
	},
}

var probeLabel = Policy[NoSettings]{
	Name: "probe-label", Phase: Mutating, Inputs: Pointers("/object/metadata/labels"), Writes: Pointers("/metadata/labels"),
	Description: "Adds the label probe: yes.",
	Judge: func(_ context.Context, request *Request, _ NoSettings) (Answer, error) {
		var object struct {
			Metadata *struct {
				Labels map[string]json.RawMessage `json:"labels"`
			} `json:"metadata"`
		}
		is, err := request.Object(&object)
		if !is {
			return nil, err
		}
		added := map[string]string{"probe": "yes"}
		switch {
		case object.Metadata == nil:
			return Patch(Add("/metadata", map[string]any{"labels": added})), nil
		case object.Metadata.Labels == nil:
			return Patch(Add("/metadata/labels", added)), nil
		case object.Metadata.Labels["probe"] == nil:
			return Patch(Add("/metadata/labels/probe", "yes")), nil
		}
		return nil, nil
	},
}

var probeVersion = Policy[NoSettings]{
	Name: "probe-version", Phase: Validating, Inputs: Nothing, Version: "probe-7",
	Description: "Has a version of its own; allows.",
	Judge:       func(context.Context, *Request, NoSettings) (Answer, error) { return nil, nil },
}

// tokens are the tokens of cancelled sleeps.
type tokens struct {
	mu   sync.Mutex
	kept []string
}

func (t *tokens) add(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, token)
	if len(t.kept) > cancelledKept {
		t.kept = t.kept[1:]
	}
}

func (t *tokens) has(token string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range t.kept {
		if one == token {
			return true
		}
	}
	return false
}
