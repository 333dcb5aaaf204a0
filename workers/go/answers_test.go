package worker_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"admission-gateway.dev/worker"
	"admission-gateway.dev/worker/workerv1"
)

func allowing(change *workerv1.Allow) *workerv1.Outcome {
	return &workerv1.Outcome{Verdict: &workerv1.Outcome_Allow{Allow: change}, Version: "1"}
}

func denying(denied *workerv1.Deny) *workerv1.Outcome {
	return &workerv1.Outcome{Verdict: &workerv1.Outcome_Deny{Deny: denied}, Version: "1"}
}

func TestEveryAnswerIsEncoded(t *testing.T) {
	accompanied := allowing(&workerv1.Allow{})
	accompanied.Warnings = []string{"one", "two"}
	accompanied.AuditAnnotations = map[string]string{"a.b-c_D": "x", "e": ""}
	accompanied.Cache = &workerv1.CacheHint{Hint: &workerv1.CacheHint_Ttl{Ttl: durationpb.New(90 * time.Second)}}
	unstored := denying(&workerv1.Deny{Code: proto.Int32(403), Message: "no", Reason: "Forbidden"})
	unstored.Cache = &workerv1.CacheHint{Hint: &workerv1.CacheHint_NoStore_{NoStore: &workerv1.CacheHint_NoStore{}}}
	arms := map[string]struct {
		answer worker.Answer
		wanted *workerv1.Outcome
	}{
		"nothing":     {nil, allowing(&workerv1.Allow{})},
		"allow":       {worker.Allow(), allowing(&workerv1.Allow{})},
		"accompanied": {worker.Allow().WithWarnings("one").WithWarnings("two").WithAuditAnnotation("a.b-c_D", "x").WithAuditAnnotation("e", "").WithTTL(90 * time.Second), accompanied},
		"deny":        {worker.Deny("no").WithNoStore(), unstored},
		"deny-with-everything": {
			worker.Deny("no").WithCode(422).WithCauses(worker.Cause{Field: "spec.a", Message: "bad"}).
				WithDetails(worker.Details{Name: "n", Group: "g", Kind: "k", UID: "u", RetryAfterSeconds: 3}),
			denying(&workerv1.Deny{Code: proto.Int32(422), Message: "no", Reason: "Invalid", Details: &workerv1.StatusDetails{
				Name: "n", Group: "g", Kind: "k", Uid: "u", RetryAfterSeconds: 3,
				Causes: []*workerv1.StatusCause{{Reason: "FieldValueInvalid", Message: "bad", Field: "spec.a"}},
			}}),
		},
		"deny-unpaired":    {worker.Deny("no").WithCode(418), denying(&workerv1.Deny{Code: proto.Int32(418), Message: "no"})},
		"deny-reason":      {worker.Deny("no").WithCode(400).WithReason(""), denying(&workerv1.Deny{Code: proto.Int32(400), Message: "no"})},
		"deny-literal":     {worker.Denied{Message: "no"}, denying(&workerv1.Deny{Message: "no"})},
		"patch":            {worker.Patch(worker.Add("/a", nil), worker.Remove("/b"), worker.Move("/c", "/d")), allowing(&workerv1.Allow{Change: &workerv1.Allow_JsonPatch{JsonPatch: []byte(`[{"op":"add","path":"/a","value":null},{"op":"remove","path":"/b"},{"op":"move","path":"/d","from":"/c"}]`)}})},
		"patch-unescaped":  {worker.Patch(worker.Test("/a", "<&>ü"), worker.Copy("/a", "/b"), worker.Replace("/a", 1.5)), allowing(&workerv1.Allow{Change: &workerv1.Allow_JsonPatch{JsonPatch: []byte(`[{"op":"test","path":"/a","value":"<&>ü"},{"op":"copy","path":"/b","from":"/a"},{"op":"replace","path":"/a","value":1.5}]`)}})},
		"patch-of-nothing": {worker.Patch(), allowing(&workerv1.Allow{})},
		"merge":            {worker.Merge(map[string]any{"a": nil}), allowing(&workerv1.Allow{Change: &workerv1.Allow_MergePatch{MergePatch: []byte(`{"a":null}`)}})},
		"merge-of-nothing": {worker.Merge(struct{}{}), allowing(&workerv1.Allow{})},
		"mutated":          {worker.Mutated(map[string]int{"a": 1}), allowing(&workerv1.Allow{Change: &workerv1.Allow_Object{Object: []byte(`{"a":1}`)}})},
		"fail":             {worker.Fail("no inventory"), &workerv1.Outcome{Verdict: &workerv1.Outcome_Failure{Failure: &workerv1.Failure{Message: "no inventory"}}, Version: "1"}},
	}
	var policies []worker.Registration
	for name, arm := range arms {
		policies = append(policies, answering(name, worker.Mutating, arm.answer))
	}
	connected := served(t, worker.Options{}, policies...)
	for name, arm := range arms {
		if found := connected.review(t, call(name, worker.Mutating)); !proto.Equal(found, arm.wanted) {
			t.Errorf("%s:\nfound  %v\nwanted %v", name, found, arm.wanted)
		}
	}
}

type notAnAnswer struct{ worker.Allowed }

func TestAnInvalidAnswerIsAFailureThatNamesThePolicy(t *testing.T) {
	broken := "a\xffb"
	answers := map[string]worker.Answer{
		"an-empty-audit-key":      worker.Allow().WithAuditAnnotation("", "x"),
		"an-audit-key-with-space": worker.Deny("no").WithAuditAnnotation("a b", "x"),
		"a-long-audit-key":        worker.Allow().WithAuditAnnotation(strings.Repeat("a", 64), "x"),
		"a-warning-not-utf-8":     worker.Allow().WithWarnings(broken),
		"a-message-not-utf-8":     worker.Deny(broken),
		"a-cause-not-utf-8":       worker.Deny("no").WithCauses(worker.Cause{Field: broken}),
		"an-annotation-not-utf-8": worker.Allow().WithAuditAnnotation("a", broken),
		"a-failure-not-utf-8":     worker.Fail(broken),
		"a-negative-ttl":          worker.Allow().WithTTL(-1),
		"a-number-that-is-none":   worker.Patch(worker.Add("/a", math.NaN())),
		"a-channel":               worker.Merge(map[string]any{"a": make(chan int)}),
		"an-unknown-operation":    worker.Patch(worker.Operation{Op: "set", Path: "/a"}),
		"a-path-without-slash":    worker.Patch(worker.Remove("a")),
		"a-merge-that-is-a-list":  worker.Merge([]int{1}),
		"a-null-object":           worker.Mutated(nil),
		"an-embedding-type":       notAnAnswer{},
		"a-pointer":               &worker.Denied{},
	}
	var policies []worker.Registration
	for name, answer := range answers {
		policies = append(policies, answering(name, worker.Mutating, answer))
	}
	connected := served(t, worker.Options{}, policies...)
	for name := range answers {
		outcome := connected.review(t, call(name, worker.Mutating))
		if text := outcome.GetFailure().GetMessage(); !strings.HasPrefix(text, "policy "+name+" returned an invalid answer") || outcome.GetVersion() != "1" {
			t.Errorf("%s: %v", name, outcome)
		}
	}
}

func TestAChangeInTheValidatingPhaseIsAFailure(t *testing.T) {
	connected := served(t, worker.Options{}, answering("changes", worker.Validating, worker.Patch(worker.Remove("/a"))))
	text := connected.review(t, call("changes", worker.Validating)).GetFailure().GetMessage()
	if !strings.Contains(text, "only a mutating policy may change the object") {
		t.Error(text)
	}
}

func TestAnAnswerLargerThanAMessageIsAFailureThatNamesItsSize(t *testing.T) {
	limits := worker.Options{Limits: worker.Limits{MessageBytes: 1000}}
	connected := served(t, limits, answering("large", worker.Validating, worker.Deny(strings.Repeat("x", 1000))))
	text := connected.review(t, call("large", worker.Validating)).GetFailure().GetMessage()
	if !strings.Contains(text, "the answer has 10") || !strings.Contains(text, "at most 936 fit a message") {
		t.Error(text)
	}
}

func TestUnchangedNumbersKeepTheirTextInAMutation(t *testing.T) {
	const numbers = `{"a":1.0,"b":9007199254740993,"c":1e400,"d":-0.0,"e":1E2,"f":0.1000}`
	policy := deciding("returns-it", worker.Mutating, func(_ context.Context, request *worker.Request) (worker.Answer, error) {
		var object map[string]any
		_, err := request.Object(&object)
		return worker.Mutated(object), err
	})
	outcome := served(t, worker.Options{}, policy).review(t, callAbout("returns-it", worker.Mutating, `{"object":`+numbers+`}`))
	if found := string(outcome.GetAllow().GetObject()); found != numbers {
		t.Error(found)
	}
}

func TestMethodsOfAnAnswerDoNotModifyIt(t *testing.T) {
	base := worker.Deny("no").WithWarnings("a").WithAuditAnnotation("a", "1").WithCauses(worker.Cause{Field: "a"})
	_ = base.WithWarnings("b").WithAuditAnnotation("b", "2").WithCauses(worker.Cause{Field: "b"}).WithCode(500)
	if len(base.Warnings) != 1 || len(base.AuditAnnotations) != 1 || len(base.Causes) != 1 || base.Code != 403 {
		t.Error(base)
	}
}
