package worker

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"admission-gateway.dev/worker/workerv1"
)

// Traces, by OpenTelemetry's API and the W3C Trace Context. What becomes of the spans is the author's: without a
// TracerProvider (otel.SetTracerProvider) nothing is recorded, and the gateway's trace context is the current one
// in the function all the same.

const tracerName = "admission-gateway.dev/worker"

var traceContext = propagation.TraceContext{}

// startSpan begins the span of a question, with the gateway's as its parent, and makes it the current one.
func startSpan(ctx context.Context, called *question, traceparent string) (context.Context, trace.Span) {
	if traceparent != "" {
		ctx = traceContext.Extract(ctx, propagation.MapCarrier{"traceparent": traceparent})
	}
	return otel.Tracer(tracerName).Start(ctx, "admission.worker/"+called.policy.name,
		trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(attribute.String("admission.policy", called.policy.name), attribute.String("admission.uid", called.request.UID)))
}

// endSpan says what came out.
func endSpan(span trace.Span, outcome *workerv1.Outcome) {
	verdict := "allow"
	switch outcome.GetVerdict().(type) {
	case *workerv1.Outcome_Deny:
		verdict = "deny"
	case *workerv1.Outcome_Failure:
		verdict = "failure"
		span.SetStatus(codes.Error, outcome.GetFailure().GetMessage())
	}
	span.SetAttributes(attribute.String("admission.verdict", verdict))
	span.End()
}
