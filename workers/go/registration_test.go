package worker_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"admission-gateway.dev/worker"
	"admission-gateway.dev/worker/workerv1"
)

var sound = deciding("sound", worker.Validating, func(context.Context, *worker.Request) (worker.Answer, error) { return nil, nil })

func TestAnInvalidRegistrationIsAnError(t *testing.T) {
	with := func(change func(*worker.Policy[worker.NoSettings])) worker.Registration {
		policy := sound
		change(&policy)
		return policy
	}
	invalid := map[string]struct {
		policy worker.Registration
		text   string
	}{
		"a name that is no label":     {with(func(p *worker.Policy[worker.NoSettings]) { p.Name = "Not_a_label" }), "DNS-1123 label"},
		"a name that is too long":     {with(func(p *worker.Policy[worker.NoSettings]) { p.Name = strings.Repeat("a", 64) }), "DNS-1123 label"},
		"no phase":                    {with(func(p *worker.Policy[worker.NoSettings]) { p.Phase = 0 }), "the phase must be"},
		"no function":                 {with(func(p *worker.Policy[worker.NoSettings]) { p.Judge = nil }), "set Judge"},
		"writes of a validating one":  {with(func(p *worker.Policy[worker.NoSettings]) { p.Writes = worker.Nothing }), "changes nothing"},
		"a pointer that is none":      {with(func(p *worker.Policy[worker.NoSettings]) { p.Inputs = worker.Pointers("object") }), "no JSON Pointer"},
		"a bad escape":                {with(func(p *worker.Policy[worker.NoSettings]) { p.Inputs = worker.Pointers("/object/~2") }), "no JSON Pointer"},
		"an empty pointer":            {with(func(p *worker.Policy[worker.NoSettings]) { p.Inputs = worker.Pointers("") }), "spelt Everything"},
		"the uid":                     {with(func(p *worker.Policy[worker.NoSettings]) { p.Inputs = worker.Pointers("/uid") }), "/uid"},
		"a place that no request has": {with(func(p *worker.Policy[worker.NoSettings]) { p.Inputs = worker.Pointers("/metadata") }), "no place in an AdmissionRequest"},
		"writes of the kind": {with(func(p *worker.Policy[worker.NoSettings]) {
			p.Phase, p.Writes = worker.Mutating, worker.Pointers("/kind")
		}), "cannot be changed"},
		"a schema that is none":    {with(func(p *worker.Policy[worker.NoSettings]) { p.Schema = json.RawMessage("[]") }), "schema"},
		"settings that are a text": {worker.Policy[string]{Name: "a", Phase: worker.Validating, Judge: func(context.Context, *worker.Request, string) (worker.Answer, error) { return nil, nil }}, "JSON object"},
		"nothing":                  {nil, "is nil"},
	}
	for name, one := range invalid {
		if _, err := worker.New("w", "1", one.policy); err == nil || !strings.Contains(err.Error(), one.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAllRegistrationErrorsAreReportedTogether(t *testing.T) {
	_, err := worker.New("w", "", sound, sound, nil)
	for _, text := range []string{"a version is required", `"sound" is registered already`, "is nil"} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q is missing: %v", text, err)
		}
	}
}

func TestDescribeReturnsTheWholeRegistration(t *testing.T) {
	type settings struct {
		Key string `json:"key"`
	}
	full := worker.Policy[settings]{
		Name: "full", Phase: worker.Mutating, Version: "7", Description: "Does something.",
		Inputs: worker.Pointers("/object/metadata/labels", "/object/metadata/labels"), Writes: worker.Everything,
		Judge: func(context.Context, *worker.Request, settings) (worker.Answer, error) { return nil, nil },
	}
	nothing := sound
	nothing.Name, nothing.Inputs = "nothing", worker.Nothing
	described, err := served(t, worker.Options{}, full, sound, nothing).Describe(within(t), &workerv1.DescribeRequest{GatewayVersion: "0.1.0"})
	if err != nil {
		t.Fatal(err)
	}
	if described.GetWorker() != "tested" || described.GetVersion() != "1" {
		t.Errorf("name and version: %v", described)
	}
	wanted := &workerv1.PolicyDescription{
		Name: "full", Version: "7", Description: "Does something.", Phases: []workerv1.Phase{workerv1.Phase_PHASE_MUTATING},
		Inputs: &workerv1.Claim{Claim: &workerv1.Claim_Pointers_{Pointers: &workerv1.Claim_Pointers{Pointers: []string{"/object/metadata/labels"}}}},
		Writes: &workerv1.Claim{Claim: &workerv1.Claim_Everything_{Everything: &workerv1.Claim_Everything{}}},
		SettingsSchema: []byte(`{"$schema":"https://json-schema.org/draft/2020-12/schema","additionalProperties":false,` +
			`"properties":{"key":{"type":"string"}},"required":["key"],"type":"object"}`),
	}
	if found := described.GetPolicies()[0]; !proto.Equal(found, wanted) {
		t.Errorf("found  %v\nwanted %v", found, wanted)
	}
	if absent := described.GetPolicies()[1]; absent.GetInputs() != nil || absent.GetWrites() != nil {
		t.Errorf("an absent claim must be unset: %v", absent)
	}
	if claim := described.GetPolicies()[2].GetInputs(); claim.GetPointers() == nil || len(claim.GetPointers().GetPointers()) > 0 {
		t.Errorf("nothing is an empty list: %v", claim)
	}
}
