package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc/metadata"

	"admission-gateway.dev/worker"
	"admission-gateway.dev/worker/workerv1"
)

// recorder is an OpenTelemetry implementation that records spans.
type recorder struct {
	noop.TracerProvider
	mu    sync.Mutex
	ended []string
}

type recordingTracer struct {
	noop.Tracer
	recorder *recorder
}

type recordedSpan struct {
	noop.Span
	recorder   *recorder
	context    trace.SpanContext
	text       string
	attributes []attribute.KeyValue
	status     string
}

func (r *recorder) Tracer(string, ...trace.TracerOption) trace.Tracer {
	return &recordingTracer{recorder: r}
}

func (r *recordingTracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	parent := trace.SpanContextFromContext(ctx)
	span := &recordedSpan{recorder: r.recorder, text: fmt.Sprintf("%s in %s below %s with %s", name, parent.TraceID(), parent.SpanID(), parent.TraceState())}
	span.context = parent.WithSpanID(trace.SpanID{1, 1, 1, 1, 1, 1, 1, 1})
	config := trace.NewSpanStartConfig(options...)
	span.attributes = config.Attributes()
	return trace.ContextWithSpan(ctx, span), span
}

func (s *recordedSpan) SpanContext() trace.SpanContext { return s.context }
func (s *recordedSpan) SetAttributes(added ...attribute.KeyValue) {
	s.attributes = append(s.attributes, added...)
}

func (s *recordedSpan) SetStatus(code codes.Code, description string) {
	s.status = fmt.Sprintf(" status=%s %q", code, description)
}

func (s *recordedSpan) End(...trace.SpanEndOption) {
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	for _, one := range s.attributes {
		s.text += fmt.Sprintf(" %s=%s", one.Key, one.Value.AsString())
	}
	s.recorder.ended = append(s.recorder.ended, s.text+s.status)
}

const (
	traceID     = "0af7651916cd43dd8448eb211c80319c"
	traceparent = "00-" + traceID + "-b7ad6b7169203331-01"
)

// recording records the spans of a test.
func recording(t *testing.T) *recorder {
	t.Helper()
	record := &recorder{}
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(record)
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	return record
}

func TestAFailureIsAnErrorOfTheSpanWithoutItsText(t *testing.T) {
	record := recording(t)
	failing := deciding("failing", worker.Validating, func(context.Context, *worker.Request) (worker.Answer, error) {
		return nil, errors.New("a value of the request")
	})
	connected := served(t, worker.Options{}, failing)
	if _, err := connected.Review(within(t), &workerv1.ReviewRequest{Call: call("failing", worker.Validating)}); err != nil {
		t.Fatal(err)
	}
	if len(record.ended) != 1 || !strings.HasSuffix(record.ended[0], ` admission.verdict=failure status=Error ""`) {
		t.Error(record.ended)
	}
}

func TestTheGatewaysTraceIsTheParentOfThePolicysSpan(t *testing.T) {
	record := recording(t)
	current := deciding("traced", worker.Validating, func(ctx context.Context, _ *worker.Request) (worker.Answer, error) {
		return worker.Deny(trace.SpanContextFromContext(ctx).SpanID().String()), nil
	})
	connected := served(t, worker.Options{}, current)
	answer, err := connected.Review(metadata.AppendToOutgoingContext(within(t), "traceparent", traceparent, "tracestate", "a=1,b=2"), &workerv1.ReviewRequest{Call: call("traced", worker.Validating)})
	if err != nil {
		t.Fatal(err)
	}
	called := call("traced", worker.Validating)
	called.Traceparent, called.Tracestate = traceparent, "a=1,b=2"
	stream := connected.stream(t)
	stream.send(item(1, called))
	_, streamed := stream.next()
	for _, outcome := range []*workerv1.Outcome{answer.GetOutcome(), streamed} {
		if outcome.GetDeny().GetMessage() != "0101010101010101" {
			t.Errorf("the policy's span should be the current one: %v", outcome)
		}
	}
	wanted := "admission.worker/traced in " + traceID + " below b7ad6b7169203331 with a=1,b=2 admission.policy=traced admission.uid=uid-1 admission.verdict=deny"
	if !slices.Equal(record.ended, []string{wanted, wanted}) {
		t.Error(record.ended)
	}
}
