package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"admission-gateway.dev/worker/workerv1"
)

// One call to one outcome: the path that Review and ReviewStream share.
//
// Whatever happens here is an outcome. An error is not a verdict: a policy that panics, returns an error or
// something absurd, cannot read its document or its settings has failed, and the operator's failurePolicy decides.
// What was thrown goes to the gateway by its type; its text and stack, which may hold a Secret, stay in the
// worker's log.

// judge holds the policies and all that is kept between calls. One for each served worker.
type judge struct {
	worker       *Worker
	kept         *keptSettings
	outcomeBytes int
}

func newJudge(worker *Worker, limits Limits) *judge {
	return &judge{worker: worker, kept: newKeptSettings(), outcomeBytes: limits.MessageBytes - envelopeBytes}
}

// question is a call that can be put to its policy: everything is known, nothing has been judged.
type question struct {
	policy   *policy
	version  string
	request  *Request
	settings any
}

// answer judges a call, and delivers its outcome: exactly one, also of a policy that ends its goroutine. The
// document and the timeout are the caller's affair: ctx is done when nobody waits any more. A document that is nil
// is missing.
func (j *judge) answer(ctx context.Context, call *workerv1.PolicyCall, document []byte, traceparent string, deliver func(*workerv1.Outcome)) {
	var outcome *workerv1.Outcome
	defer func() { deliver(outcome) }() // runtime.Goexit runs what is deferred and nothing else
	defer func() {
		if outcome == nil {
			outcome = failure(fmt.Sprintf("policy %s could not be called; see the worker's log", call.GetPolicy()), 0, "")
		}
	}()
	var called *question
	if called, outcome = j.question(call, document); outcome != nil {
		slog.Warn(outcome.GetFailure().GetMessage(), "uid", call.GetUid(), "policy", call.GetPolicy())
		return
	}
	ctx, span := startSpan(ctx, called, traceparent)
	defer func() { endSpan(span, outcome) }()
	j.put(ctx, called, &outcome)
}

// question reads the call's settings and document, or says why they cannot be read.
func (j *judge) question(call *workerv1.PolicyCall, document []byte) (*question, *workerv1.Outcome) {
	held := j.worker.byName[call.GetPolicy()]
	if held == nil {
		message := fmt.Sprintf("worker %s holds no policy %q; it holds: %s", j.worker.name, call.GetPolicy(), j.worker.names())
		return nil, failure(message, workerv1.FailureReason_FAILURE_REASON_UNKNOWN_POLICY, "")
	}
	version := j.worker.versionOf(held)
	if phase := Phase(call.GetPhase()); phase != held.phase {
		message := fmt.Sprintf("policy %s is for %s and was called in %s", held.name, held.phase, phase)
		return nil, failure(message, workerv1.FailureReason_FAILURE_REASON_UNKNOWN_POLICY, version)
	}
	if document == nil {
		return nil, failure(fmt.Sprintf("policy %s was called without a document", held.name), 0, version)
	}
	settings, err := j.kept.read(held, call.GetSettings())
	if err != nil {
		message := fmt.Sprintf("settings of policy %s: %s", held.name, err)
		return nil, failure(message, workerv1.FailureReason_FAILURE_REASON_INVALID_SETTINGS, version)
	}
	request, err := newRequest(document, call.GetUid())
	if err != nil {
		return nil, failure(fmt.Sprintf("policy %s: %s", held.name, err), 0, version)
	}
	return &question{policy: held, version: version, request: request, settings: settings}, nil
}

// put puts the question to its policy.
func (j *judge) put(ctx context.Context, called *question, outcome **workerv1.Outcome) {
	defer func() {
		if *outcome == nil { // a panic, or runtime.Goexit, which recover does not see
			*outcome = called.panicked(recover())
		}
	}()
	answer, err := called.policy.judge(ctx, called.request, called.settings)
	var made *workerv1.Outcome
	if err == nil {
		made, err = outcomeOf(answer, called.policy.phase, called.version)
	}
	if err != nil {
		*outcome = called.erred(ctx, err)
		return
	}
	if said := made.GetFailure(); said != nil {
		called.logFailure(ctx, "error", said.GetMessage())
	}
	if size := proto.Size(made); size > j.outcomeBytes {
		message := fmt.Sprintf("policy %s: the answer has %d bytes, at most %d fit a message: answer with a patch", called.policy.name, size, j.outcomeBytes)
		slog.Error(message, called.attributes()...)
		made = failure(message, 0, called.version)
	}
	*outcome = made
}

// erred is the outcome of a function that returned an error, or an answer that is none. Text is shown only if it is
// one of ours, which hold no values.
func (q *question) erred(ctx context.Context, err error) *workerv1.Outcome {
	q.logFailure(ctx, "type", fmt.Sprintf("%T", err), "error", err.Error())
	said := fmt.Sprintf("returned an error of type %T; see the worker's log", err)
	var invalidAnswer *InvalidAnswerError
	var invalidDocument *InvalidDocumentError
	switch {
	case errors.As(err, &invalidAnswer):
		said = fmt.Sprintf("returned what is no answer (%T): %s", invalidAnswer, invalidAnswer)
	case errors.As(err, &invalidDocument):
		said = fmt.Sprintf("returned %T: %s", invalidDocument, invalidDocument)
	}
	return failure(fmt.Sprintf("policy %s %s", q.policy.name, said), 0, q.version)
}

// logFailure logs that the function failed, as it said itself: by Fail, or by an error.
func (q *question) logFailure(ctx context.Context, why ...any) {
	level := slog.LevelError
	if ctx.Err() != nil {
		level = slog.LevelDebug // nobody waits any more, and mostly it says just that
	}
	slog.Log(ctx, level, "policy "+q.policy.name+" failed", append(q.attributes(), why...)...)
}

// panicked is the outcome of a function that did not return.
func (q *question) panicked(thrown any) *workerv1.Outcome {
	slog.Error("policy "+q.policy.name+" panicked",
		append(q.attributes(), "type", fmt.Sprintf("%T", thrown), "panic", fmt.Sprint(thrown), "stack", string(debug.Stack()))...)
	said := fmt.Sprintf("panicked with a value of type %T; see the worker's log", thrown)
	if thrown == nil {
		said = "ended its goroutine without an answer (runtime.Goexit)"
	}
	return failure(fmt.Sprintf("policy %s %s", q.policy.name, said), 0, q.version)
}

func (q *question) attributes() []any { return []any{"uid", q.request.UID, "policy", q.policy.name} }

// timedOut is the outcome of a call whose time is over.
func (j *judge) timedOut(call *workerv1.PolicyCall) *workerv1.Outcome {
	message := fmt.Sprintf("policy %s: no answer within the call's timeout of %g s", call.GetPolicy(), call.GetTimeout().AsDuration().Seconds())
	slog.Warn(message, "uid", call.GetUid(), "policy", call.GetPolicy())
	version := ""
	if held := j.worker.byName[call.GetPolicy()]; held != nil {
		version = j.worker.versionOf(held)
	}
	return failure(message, 0, version)
}

// versionOf a policy: its own, else the worker's.
func (w *Worker) versionOf(held *policy) string {
	if held.version != "" {
		return held.version
	}
	return w.version
}

// names of the policies, for messages.
func (w *Worker) names() string {
	var names []string
	for _, held := range w.policies {
		names = append(names, held.name)
	}
	if len(names) == 0 {
		return "none"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
