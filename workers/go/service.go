package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"admission-gateway.dev/worker/workerv1"
)

// The gRPC service of one worker.
//
// Calls above the limit get RESOURCE_EXHAUSTED, calls whose deadline is over DEADLINE_EXCEEDED, all others a
// response. A gRPC status is a failure of the call, never a verdict.

type service struct {
	workerv1.UnimplementedWorkerServer

	worker      *Worker
	description *workerv1.DescribeResponse
	judge       *judge
	limits      Limits
	inFlight    *inFlight
	stopping    <-chan struct{}
	arrival     atomic.Int64 // time of the last Review, in nanoseconds
	streams     atomic.Int64 // open streams
}

func newService(worker *Worker, limits Limits, stopping <-chan struct{}) *service {
	return &service{
		worker:      worker,
		description: worker.description(),
		judge:       newJudge(worker, limits),
		limits:      limits,
		inFlight:    &inFlight{limit: int64(limits.InFlight)},
		stopping:    stopping,
	}
}

// description returns the response of Describe. It is built once, so that Describe is cheap and never fails.
func (w *Worker) description() *workerv1.DescribeResponse {
	described := &workerv1.DescribeResponse{Worker: w.name, Version: w.version}
	for _, registered := range w.policies {
		described.Policies = append(described.Policies, registered.message())
	}
	return described
}

// Describe returns the policies, their versions and claims.
func (s *service) Describe(ctx context.Context, request *workerv1.DescribeRequest) (*workerv1.DescribeResponse, error) {
	from := "an unknown address"
	if caller, known := peer.FromContext(ctx); known {
		from = caller.Addr.String()
	}
	slog.Info(fmt.Sprintf("described to gateway %q at %s", request.GetGatewayVersion(), from))
	return s.description, nil
}

// ValidateSettings checks settings for a policy. It does not call the policy, and caches nothing.
func (s *service) ValidateSettings(_ context.Context, request *workerv1.ValidateSettingsRequest) (*workerv1.ValidateSettingsResponse, error) {
	registered := s.worker.byName[request.GetPolicy()]
	if registered == nil {
		message := fmt.Sprintf("worker %s holds no policy %q; it holds: %s", s.worker.name, request.GetPolicy(), s.worker.names())
		return &workerv1.ValidateSettingsResponse{Errors: []*workerv1.SettingsError{{Message: message}}}, nil
	}
	_, warnings, wrong := registered.settings(request.GetSettings())
	if len(wrong) == 0 {
		return &workerv1.ValidateSettingsResponse{Warnings: valid(warnings)}, nil
	}
	answer := &workerv1.ValidateSettingsResponse{}
	for _, one := range wrong {
		texts := valid([]string{one.Pointer, one.Message})
		answer.Errors = append(answer.Errors, &workerv1.SettingsError{Pointer: texts[0], Message: texts[1]})
	}
	return answer, nil
}

// Review decides one policy call, under the deadline of the RPC. The policy runs in a goroutine of its own, so that
// the RPC ends at its deadline even if the policy ignores its context.
func (s *service) Review(ctx context.Context, request *workerv1.ReviewRequest) (*workerv1.ReviewResponse, error) {
	s.arrival.Store(time.Now().UnixNano())
	if !s.inFlight.enter() {
		slog.Warn("policy call rejected: "+s.inFlight.refusal(), "uid", request.GetCall().GetUid(), "policy", request.GetCall().GetPolicy())
		return nil, status.Error(codes.ResourceExhausted, s.inFlight.refusal())
	}
	judged := make(chan *workerv1.Outcome, 1)
	addMetadata(ctx, request.GetCall())
	go s.judge.answer(ctx, request.GetCall(), documentOf(request.GetCall()), func(outcome *workerv1.Outcome) {
		s.inFlight.leave()
		judged <- outcome
	})
	select {
	case outcome := <-judged:
		return &workerv1.ReviewResponse{Outcome: outcome}, nil
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			slog.Warn(fmt.Sprintf("policy %s: no answer within the deadline", request.GetCall().GetPolicy()),
				"uid", request.GetCall().GetUid(), "policy", request.GetCall().GetPolicy())
		}
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// ReviewStream decides many policy calls.
func (s *service) ReviewStream(stream workerv1.Worker_ReviewStreamServer) error {
	s.streams.Add(1)
	defer s.streams.Add(-1)
	return newReviewStream(s, stream).run()
}

// documentOf returns the document in a call; nil: the call has none. "document_index and timeout are not used here."
func documentOf(call *workerv1.PolicyCall) []byte {
	source, is := call.GetDocumentSource().(*workerv1.PolicyCall_Document)
	if !is {
		return nil
	}
	if source.Document == nil {
		return []byte{} // present but empty, which is not JSON
	}
	return source.Document
}

// addMetadata puts the trace context in the metadata of Review where that of a call on the stream is.
func addMetadata(ctx context.Context, call *workerv1.PolicyCall) {
	if call != nil {
		call.Traceparent, call.Tracestate = metadataOf(ctx, "traceparent"), metadataOf(ctx, "tracestate")
	}
}

func metadataOf(ctx context.Context, name string) string {
	if found := metadata.ValueFromIncomingContext(ctx, name); len(found) > 0 {
		return found[0]
	}
	return ""
}
