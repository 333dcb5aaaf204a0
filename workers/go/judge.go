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

// Decides one policy call. Review and ReviewStream share this path.
//
// Every call ends with an outcome. An error is not a verdict: if a policy panics, returns an error or an invalid
// answer, or gets an invalid document or settings, the outcome is a failure, and the operator's failurePolicy
// decides. The failure has the type of the error or panic. Its text and stack may hold a Secret, and stay in the
// worker's log.

// judge calls the policies of one served worker, and caches their settings.
type judge struct {
	worker       *Worker
	settings     *settingsCache
	outcomeBytes int
}

func newJudge(worker *Worker, limits Limits) *judge {
	return &judge{worker: worker, settings: newSettingsCache(), outcomeBytes: limits.MessageBytes - envelopeBytes}
}

// preparedCall is a policy call whose policy, settings and document are valid.
type preparedCall struct {
	policy   *policy
	version  string
	request  *Request
	settings any

	traceparent, tracestate string
}

// answer calls the policy and delivers exactly one outcome, also if the policy ends its goroutine. The caller
// resolves the document (nil: it is missing) and enforces the timeout; ctx is done when the gateway no longer waits.
func (j *judge) answer(ctx context.Context, call *workerv1.PolicyCall, document []byte, deliver func(*workerv1.Outcome)) {
	var outcome *workerv1.Outcome
	defer func() { deliver(outcome) }() // runtime.Goexit runs deferred functions only
	defer func() {
		if outcome == nil {
			outcome = failure(fmt.Sprintf("policy %s could not be called; see the worker's log", call.GetPolicy()), 0, "")
		}
	}()
	var prepared *preparedCall
	if prepared, outcome = j.prepare(call, document); outcome != nil {
		slog.Warn(outcome.GetFailure().GetMessage(), "uid", call.GetUid(), "policy", call.GetPolicy())
		return
	}
	ctx, span := startSpan(ctx, prepared)
	defer func() { endSpan(span, outcome) }()
	j.call(ctx, prepared, &outcome)
}

// prepare validates the call, or returns the failure.
func (j *judge) prepare(call *workerv1.PolicyCall, document []byte) (*preparedCall, *workerv1.Outcome) {
	registered := j.worker.byName[call.GetPolicy()]
	if registered == nil {
		message := fmt.Sprintf("worker %s holds no policy %q; it holds: %s", j.worker.name, call.GetPolicy(), j.worker.names())
		return nil, failure(message, workerv1.FailureReason_FAILURE_REASON_UNKNOWN_POLICY, "")
	}
	version := j.worker.versionOf(registered)
	if phase := Phase(call.GetPhase()); phase != registered.phase {
		message := fmt.Sprintf("policy %s is for %s and was called in %s", registered.name, registered.phase, phase)
		return nil, failure(message, workerv1.FailureReason_FAILURE_REASON_UNKNOWN_POLICY, version)
	}
	if document == nil {
		return nil, failure(fmt.Sprintf("policy %s was called without a document", registered.name), 0, version)
	}
	settings, err := j.settings.read(registered, call.GetSettings())
	if err != nil {
		message := fmt.Sprintf("settings of policy %s: %s", registered.name, err)
		return nil, failure(message, workerv1.FailureReason_FAILURE_REASON_INVALID_SETTINGS, version)
	}
	request, err := newRequest(document, call.GetUid())
	if err != nil {
		return nil, failure(fmt.Sprintf("policy %s: %s", registered.name, err), 0, version)
	}
	return &preparedCall{
		policy: registered, version: version, request: request, settings: settings,
		traceparent: call.GetTraceparent(), tracestate: call.GetTracestate(),
	}, nil
}

// call calls the policy.
func (j *judge) call(ctx context.Context, prepared *preparedCall, outcome **workerv1.Outcome) {
	defer func() {
		if *outcome == nil { // a panic, or runtime.Goexit, which recover does not see
			*outcome = prepared.panicOutcome(recover())
		}
	}()
	answer, err := prepared.policy.judge(ctx, prepared.request, prepared.settings)
	var made *workerv1.Outcome
	if err == nil {
		made, err = outcomeOf(answer, prepared.policy.phase, prepared.version)
	}
	if err != nil {
		*outcome = prepared.errorOutcome(ctx, err)
		return
	}
	if text := made.GetFailure(); text != nil {
		prepared.logFailure(ctx, "error", text.GetMessage())
	}
	if size := proto.Size(made); size > j.outcomeBytes {
		message := fmt.Sprintf("policy %s: the answer has %d bytes, at most %d fit a message: answer with a patch", prepared.policy.name, size, j.outcomeBytes)
		slog.Error(message, prepared.attributes()...)
		made = failure(message, 0, prepared.version)
	}
	*outcome = made
}

// errorOutcome is the outcome of a returned error or an invalid answer. It has the text of our own errors only, which
// hold no values.
func (p *preparedCall) errorOutcome(ctx context.Context, err error) *workerv1.Outcome {
	p.logFailure(ctx, "type", fmt.Sprintf("%T", err), "error", err.Error())
	text := fmt.Sprintf("returned an error of type %T; see the worker's log", err)
	var invalidAnswer *InvalidAnswerError
	var invalidDocument *InvalidDocumentError
	switch {
	case errors.As(err, &invalidAnswer):
		text = fmt.Sprintf("returned an invalid answer (%T): %s", invalidAnswer, invalidAnswer)
	case errors.As(err, &invalidDocument):
		text = fmt.Sprintf("returned %T: %s", invalidDocument, invalidDocument)
	}
	return failure(fmt.Sprintf("policy %s %s", p.policy.name, text), 0, p.version)
}

// logFailure logs that the function returned Fail or an error.
func (p *preparedCall) logFailure(ctx context.Context, why ...any) {
	level := slog.LevelError
	if ctx.Err() != nil {
		level = slog.LevelDebug // the gateway no longer waits, and the error mostly reports that
	}
	slog.Log(ctx, level, "policy "+p.policy.name+" failed", append(p.attributes(), why...)...)
}

// panicOutcome is the outcome of a function that did not return.
func (p *preparedCall) panicOutcome(thrown any) *workerv1.Outcome {
	slog.Error("policy "+p.policy.name+" panicked",
		append(p.attributes(), "type", fmt.Sprintf("%T", thrown), "panic", fmt.Sprint(thrown), "stack", string(debug.Stack()))...)
	text := fmt.Sprintf("panicked with a value of type %T; see the worker's log", thrown)
	if thrown == nil {
		text = "ended its goroutine without an answer (runtime.Goexit)"
	}
	return failure(fmt.Sprintf("policy %s %s", p.policy.name, text), 0, p.version)
}

func (p *preparedCall) attributes() []any {
	return []any{"uid", p.request.UID, "policy", p.policy.name}
}

// timeoutOutcome is the outcome of a call whose timeout is over.
func (j *judge) timeoutOutcome(call *workerv1.PolicyCall) *workerv1.Outcome {
	message := fmt.Sprintf("policy %s: no answer within the call's timeout of %g s", call.GetPolicy(), call.GetTimeout().AsDuration().Seconds())
	slog.Warn(message, "uid", call.GetUid(), "policy", call.GetPolicy())
	version := ""
	if registered := j.worker.byName[call.GetPolicy()]; registered != nil {
		version = j.worker.versionOf(registered)
	}
	return failure(message, 0, version)
}

// versionOf returns the version of a policy: its own, else the worker's.
func (w *Worker) versionOf(registered *policy) string {
	if registered.version != "" {
		return registered.version
	}
	return w.version
}

// names returns the names of the policies, for messages.
func (w *Worker) names() string {
	var names []string
	for _, registered := range w.policies {
		names = append(names, registered.name)
	}
	if len(names) == 0 {
		return "none"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
