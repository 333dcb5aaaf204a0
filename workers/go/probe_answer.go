package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// The probe that returns every kind of answer, with warnings, audit annotations and cache hints.

type answerSettings struct {
	Arm              string            `json:"arm"`
	Warnings         []string          `json:"warnings,omitempty"`
	AuditAnnotations map[string]string `json:"auditAnnotations,omitempty"`
	Cache            *cacheSettings    `json:"cache,omitempty"`
}

// cacheSettings are "no-store" or a number of seconds.
type cacheSettings struct{ hint CacheHint }

func (c *cacheSettings) UnmarshalJSON(text []byte) error {
	if string(text) == `"no-store"` {
		c.hint.NoStore = true
		return nil
	}
	var seconds float64
	if kindOf(text) != "a number" || json.Unmarshal(text, &seconds) != nil {
		return SettingsError{Message: `must be "no-store" or a number of seconds`}
	}
	c.hint.TTL = time.Duration(seconds * float64(time.Second))
	return nil
}

var probeArms = []string{"allow", "nothing", "deny", "deny-plainly", "patch", "merge", "mutated", "fail"}

var probeAnswer = Policy[answerSettings]{
	Name: "probe-answer", Phase: Mutating,
	Description: "Answers as its settings say.",
	Check: func(settings answerSettings, findings *Findings) {
		if !slices.Contains(probeArms, settings.Arm) {
			findings.Error("/arm", fmt.Sprintf("must be one of %v, is %q", probeArms, settings.Arm))
		}
	},
	Judge: func(_ context.Context, request *Request, settings answerSettings) (Answer, error) {
		switch settings.Arm {
		case "nothing":
			return nil, nil
		case "deny":
			return settings.denial(deniedByProbe()), nil
		case "deny-plainly":
			return settings.denial(Deny("denied")), nil
		case "patch":
			return settings.allowance(patchedByProbe()), nil
		case "merge":
			return settings.allowance(Merge(map[string]any{"metadata": map[string]any{"annotations": map[string]string{"probe": "merged"}}})), nil
		case "mutated":
			object, err := annotatedByProbe(request)
			return settings.allowance(Mutated(object)), err
		case "fail":
			return Fail("failed by the probe"), nil
		default:
			return settings.allowance(Allow()), nil
		}
	},
}

func (s answerSettings) allowance(allowed Allowed) Allowed {
	allowed.Warnings, allowed.AuditAnnotations = s.Warnings, s.AuditAnnotations
	if s.Cache != nil {
		allowed.Cache = &s.Cache.hint
	}
	return allowed
}

func (s answerSettings) denial(denied Denied) Denied {
	denied.Warnings, denied.AuditAnnotations = s.Warnings, s.AuditAnnotations
	if s.Cache != nil {
		denied.Cache = &s.Cache.hint
	}
	return denied
}

func deniedByProbe() Denied {
	return Deny("denied by the probe").WithCode(409).
		WithCauses(Cause{Field: "spec.probe", Message: "a cause", Reason: "FieldValueInvalid"}).
		WithDetails(Details{Name: "probe", Group: "probes.example.com", Kind: "Probe", UID: "probe-uid", RetryAfterSeconds: 7})
}

func patchedByProbe() Allowed {
	return Patch(Add("/metadata/annotations", map[string]string{"probe": "patched"}))
}

func annotatedByProbe(request *Request) (map[string]any, error) {
	var object map[string]any
	is, err := request.Object(&object)
	if !is {
		return nil, errors.Join(err, errors.New("there is no object to change"))
	}
	metadata, _ := object["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		object["metadata"] = metadata
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	annotations["probe"] = "mutated"
	return object, nil
}
