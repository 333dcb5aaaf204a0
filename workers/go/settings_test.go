package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"admission-gateway.dev/worker"
	"admission-gateway.dev/worker/workerv1"
)

type allKinds struct {
	Name    string                    `json:"name"`
	Count   int8                      `json:"count,omitempty"`
	Share   float64                   `json:"share,omitempty"`
	On      *bool                     `json:"on"`
	Labels  map[string]string         `json:"labels,omitempty"`
	Nested  []struct{ Key []uint16 }  `json:"nested,omitempty"`
	Any     any                       `json:"any,omitempty"`
	Bytes   []byte                    `json:"bytes,omitempty"`
	Checked map[string]allKindsOddOne `json:"checked,omitempty"`
	allKindsEmbedded
}

type allKindsEmbedded struct {
	Inherited bool `json:"inherited,omitzero"`
}

// allKindsOddOne has its own decoder.
type allKindsOddOne struct{ number int }

func (o *allKindsOddOne) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, &o.number); err != nil || o.number%2 == 0 {
		return worker.SettingsError{Pointer: "/itself", Message: "must be odd"}
	}
	return nil
}

var ofAllKinds = worker.Policy[allKinds]{
	Name: "all-kinds", Phase: worker.Validating,
	Judge: func(context.Context, *worker.Request, allKinds) (worker.Answer, error) { return nil, nil },
	Check: func(settings allKinds, findings *worker.Findings) {
		if settings.Name == "bad" {
			findings.Error("/name", "must not be bad")
			findings.Error("", "is bad as a whole")
		}
		if settings.Name == "old" {
			findings.Warn("old goes away")
		}
		if settings.Name == "panic" {
			panic("a secret")
		}
	},
}

// findings returns the errors and warnings of ValidateSettings, as lines.
func findings(t *testing.T, connected *client, policy, settings string) []string {
	t.Helper()
	answer, err := connected.ValidateSettings(within(t), &workerv1.ValidateSettingsRequest{Policy: policy, Settings: []byte(settings)})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, one := range answer.GetErrors() {
		lines = append(lines, one.GetPointer()+": "+one.GetMessage())
	}
	for _, one := range answer.GetWarnings() {
		lines = append(lines, "warning: "+one)
	}
	return lines
}

func TestEveryErrorInSettingsHasItsPointer(t *testing.T) {
	connected := served(t, worker.Options{}, ofAllKinds)
	cases := map[string][]string{
		`{"name":"a","on":null,"labels":{"a":"b"},"nested":[{"Key":[1]}],"any":{"x":1},"bytes":"YQ==","checked":{"a":1},"inherited":true,"share":1,"count":-1}`: nil,
		`{}`:            {"/name: Required value"},
		`{"name":null}`: {"/name: must be a string, is null"},
		`{"name":1,"count":"x","labels":{"a/b":[]}}`: {"/name: must be a string, is a number", "/count: must be a number, is a string", "/labels/a~1b: must be a string, is an array"},
		`{"name":"a","count":1.5}`:                   {"/count: must be a whole number of 8 bits, is a number"},
		`{"name":"a","count":128}`:                   {"/count: must be a whole number of 8 bits, is a number"},
		`{"name":"a","share":1e999}`:                 {"/share: must be a number that 64 bits hold, is a number"},
		`{"name":"a","nested":[{"Key":[1,-1]},{"Key":null},{"key":[]}]}`: {
			"/nested/0/Key/1: must be a whole number of 16 bits, not negative, is a number",
			"/nested/1/Key: must be an array, is null",
			"/nested/2/key: unknown member; known are: Key",
			"/nested/2/Key: Required value",
		},
		`{"name":"a","bytes":"!"}`:               {"/bytes: must be of type []uint8, is a string"},
		`{"name":"a","checked":{"a":2,"b":"x"}}`: {"/checked/a/itself: must be odd", "/checked/b/itself: must be odd"},
		`{"name":"a","Name":"b","other":1}`:      {"/Name: unknown member; known are: any, bytes, checked, count, inherited, labels, name, nested, on, share", "/other: unknown member; known are: any, bytes, checked, count, inherited, labels, name, nested, on, share"},
		`{"name":"bad"}`:                         {"/name: must not be bad", ": is bad as a whole"},
		`{"name":"old"}`:                         {"warning: old goes away"},
		`{"name":"panic"}`:                       {": the settings could not be checked: panic of type string in the worker; see its log"},
		`[]`:                                     {": the settings must be one JSON object, found: an array"},
		`null`:                                   {": the settings must be one JSON object, found: null"},
		``:                                       {": the settings must be one JSON object, found: empty"},
		`{"name":`:                               {": the settings must be one JSON object, found: no JSON"},
		`{"name":"a"} x`:                         {": the settings must be one JSON object, found: no JSON"},
	}
	for settings, wanted := range cases {
		if found := findings(t, connected, "all-kinds", settings); !slices.Equal(found, wanted) {
			t.Errorf("%s\nfound  %q\nwanted %q", settings, found, wanted)
		}
	}
}

func TestAllowUnknownSettingsMakesUnknownMembersWarnings(t *testing.T) {
	loose := ofAllKinds
	loose.AllowUnknownSettings = true
	found := findings(t, served(t, worker.Options{}, loose), "all-kinds", `{"name":"a","other":1}`)
	if !slices.Equal(found, []string{"warning: /other is no member of these settings and is ignored"}) {
		t.Error(found)
	}
}

func TestAPolicyWithoutSettingsAcceptsOnlyAnEmptyObject(t *testing.T) {
	connected := served(t, worker.Options{}, sound)
	if found := findings(t, connected, "sound", "{}"); found != nil {
		t.Error(found)
	}
	if found := findings(t, connected, "sound", `{"a":1}`); !slices.Equal(found, []string{"/a: unknown member; known are: none"}) {
		t.Error(found)
	}
	if found := findings(t, connected, "other", "{}"); len(found) != 1 || !strings.Contains(found[0], `holds no policy "other"; it holds: sound`) {
		t.Error(found)
	}
}

func TestInvalidSettingsAreAFailure(t *testing.T) {
	called := call("all-kinds", worker.Validating)
	called.Settings = []byte(`{"name":1,"x":2}`)
	failed := served(t, worker.Options{}, ofAllKinds).review(t, called).GetFailure()
	if failed.GetReason() != workerv1.FailureReason_FAILURE_REASON_INVALID_SETTINGS || !strings.Contains(failed.GetMessage(), "settings of policy all-kinds: /name: must be a string, is a number; /x: unknown") {
		t.Error(failed)
	}
}

func TestSettingsAreConvertedOnceForEachDistinctText(t *testing.T) {
	var checks atomic.Int32
	counting := worker.Policy[map[string]int]{
		Name: "counting", Phase: worker.Validating,
		Check: func(map[string]int, *worker.Findings) { checks.Add(1) },
		Judge: func(_ context.Context, _ *worker.Request, settings map[string]int) (worker.Answer, error) {
			return worker.Deny(fmt.Sprint(settings["a"])), nil
		},
	}
	stream := served(t, worker.Options{}, counting).stream(t)
	for id := range uint64(100) {
		called := call("counting", worker.Validating)
		called.Settings = fmt.Appendf(nil, `{"a":%d}`, id%2)
		stream.send(item(id, called))
	}
	for range 100 {
		id, outcome := stream.next()
		if text := outcome.GetDeny().GetMessage(); text != fmt.Sprint(id%2) {
			t.Errorf("%d: %s", id, text)
		}
	}
	if checks.Load() != 2 {
		t.Errorf("converted %d times", checks.Load())
	}
}

func TestSettingsRemovedFromTheCacheAreConvertedAgain(t *testing.T) {
	var checks atomic.Int32
	counting := worker.Policy[map[string]int]{
		Name: "counting", Phase: worker.Validating,
		Check: func(map[string]int, *worker.Findings) { checks.Add(1) },
		Judge: func(context.Context, *worker.Request, map[string]int) (worker.Answer, error) { return nil, nil },
	}
	connected := served(t, worker.Options{}, counting)
	for _, round := range []int{0, 1} {
		for number := range 257 {
			called := call("counting", worker.Validating)
			called.Settings = fmt.Appendf(nil, `{"a":%d}`, number)
			if connected.review(t, called).GetAllow() == nil {
				t.Fatal(round, number)
			}
		}
	}
	if checks.Load() != 2*257 {
		t.Errorf("converted %d times", checks.Load())
	}
}

func TestTheSchemaRequiresTheSameAsTheConversion(t *testing.T) {
	described, err := served(t, worker.Options{}, ofAllKinds).Describe(within(t), &workerv1.DescribeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(described.GetPolicies()[0].GetSettingsSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	properties := schema["properties"].(map[string]any)
	if fmt.Sprint(schema["required"]) != "[name]" || schema["additionalProperties"] != false || len(properties) != 10 {
		t.Error(schema)
	}
	for name, wanted := range map[string]string{
		"on": `{"type":["boolean","null"]}`, "count": `{"type":"integer"}`, "any": `{}`,
		"labels": `{"additionalProperties":{"type":"string"},"type":"object"}`, "inherited": `{"type":"boolean"}`,
	} {
		if found, _ := json.Marshal(properties[name]); string(found) != wanted {
			t.Errorf("%s: %s", name, found)
		}
	}
}
