package worker

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"admission-gateway.dev/worker/workerv1"
)

// Traces, with OpenTelemetry's API and W3C Trace Context. The author sets the TracerProvider
// (otel.SetTracerProvider). Without one nothing is recorded, but the gateway's trace context is still the current one
// in the function.

const tracerName = "admission-gateway.dev/worker"

var traceContext = propagation.TraceContext{}

// startSpan starts the span of a call, as a child of the gateway's, and makes it the current one.
func startSpan(ctx context.Context, call *preparedCall) (context.Context, trace.Span) {
	if call.traceparent != "" {
		ctx = traceContext.Extract(ctx, propagation.MapCarrier{"traceparent": call.traceparent, "tracestate": call.tracestate})
	}
	return otel.Tracer(tracerName).Start(ctx, "admission.worker/"+call.policy.name,
		trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(attribute.String("admission.policy", call.policy.name), attribute.String("admission.uid", call.request.UID)))
}

// endSpan sets the verdict and ends the span.
func endSpan(span trace.Span, outcome *workerv1.Outcome) {
	verdict := "allow"
	switch outcome.GetVerdict().(type) {
	case *workerv1.Outcome_Deny:
		verdict = "deny"
	case *workerv1.Outcome_Failure:
		verdict = "failure"
		// Not its message, which may have values of the request; that is in the answer and the worker's log.
		span.SetStatus(codes.Error, "")
	}
	span.SetAttributes(attribute.String("admission.verdict", verdict))
	span.End()
}

// exportSpans exports the spans that the author's TracerProvider still holds: Main exits before their batch is due, and
// os.Exit runs no deferred function of the author.
func exportSpans() {
	provider, holds := otel.GetTracerProvider().(interface{ ForceFlush(context.Context) error })
	if !holds {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), exportTimeout)
	defer cancel()
	if err := provider.ForceFlush(ctx); err != nil {
		slog.Warn("the last spans are not exported: " + oneLine(err))
	}
}
