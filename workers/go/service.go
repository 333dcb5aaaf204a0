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

// The contract's four calls, for one worker.
//
// Too many calls are RESOURCE_EXHAUSTED, a call whose deadline is over is DEADLINE_EXCEEDED; everything else is an
// answer. A gRPC status is a failure of the call and never a verdict.

type service struct {
	workerv1.UnimplementedWorkerServer

	worker      *Worker
	description *workerv1.DescribeResponse
	judge       *judge
	limits      Limits
	inFlight    *inFlight
	stopping    <-chan struct{}
	arrival     atomic.Int64 // when a Review came last, in nanoseconds
	streams     atomic.Int64 // that are open
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

// description is what Describe says, made once: it must be cheap, and must not fail while the worker can judge.
func (w *Worker) description() *workerv1.DescribeResponse {
	described := &workerv1.DescribeResponse{Worker: w.name, Version: w.version}
	for _, held := range w.policies {
		described.Policies = append(described.Policies, held.message())
	}
	return described
}

// Describe says which policies there are, their versions and claims.
func (s *service) Describe(ctx context.Context, request *workerv1.DescribeRequest) (*workerv1.DescribeResponse, error) {
	from := "somebody"
	if caller, known := peer.FromContext(ctx); known {
		from = caller.Addr.String()
	}
	slog.Info(fmt.Sprintf("described to gateway %q at %s", request.GetGatewayVersion(), from))
	return s.description, nil
}

// ValidateSettings says whether a policy can work with these settings. Nothing is judged, and nothing kept.
func (s *service) ValidateSettings(_ context.Context, request *workerv1.ValidateSettingsRequest) (*workerv1.ValidateSettingsResponse, error) {
	held := s.worker.byName[request.GetPolicy()]
	if held == nil {
		message := fmt.Sprintf("worker %s holds no policy %q; it holds: %s", s.worker.name, request.GetPolicy(), s.worker.names())
		return &workerv1.ValidateSettingsResponse{Errors: []*workerv1.SettingsError{{Message: message}}}, nil
	}
	_, warnings, wrong := held.settings(request.GetSettings())
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

// Review judges exactly one call, under the call's deadline. The policy runs in a goroutine of its own: one that
// does not look at its context must not hold up the answer to whoever waits until the deadline.
func (s *service) Review(ctx context.Context, request *workerv1.ReviewRequest) (*workerv1.ReviewResponse, error) {
	s.arrival.Store(time.Now().UnixNano())
	if !s.inFlight.enter() {
		slog.Warn("a call was refused: "+s.inFlight.refusal(), "uid", request.GetCall().GetUid(), "policy", request.GetCall().GetPolicy())
		return nil, status.Error(codes.ResourceExhausted, s.inFlight.refusal())
	}
	judged := make(chan *workerv1.Outcome, 1)
	go s.judge.answer(ctx, request.GetCall(), documentOf(request.GetCall()), traceparentOf(ctx), func(outcome *workerv1.Outcome) {
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

// ReviewStream judges many calls.
func (s *service) ReviewStream(stream workerv1.Worker_ReviewStreamServer) error {
	s.streams.Add(1)
	defer s.streams.Add(-1)
	return newConversation(s, stream).run()
}

// documentOf a call that brings it along; nil: it does not. "document_index and timeout are not used here."
func documentOf(call *workerv1.PolicyCall) []byte {
	source, is := call.GetDocumentSource().(*workerv1.PolicyCall_Document)
	if !is {
		return nil
	}
	if source.Document == nil {
		return []byte{} // an empty one is there, and is no JSON
	}
	return source.Document
}

func traceparentOf(ctx context.Context) string {
	if found := metadata.ValueFromIncomingContext(ctx, "traceparent"); len(found) > 0 {
		return found[0]
	}
	return ""
}
