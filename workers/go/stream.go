package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"google.golang.org/grpc/status"

	"admission-gateway.dev/worker/workerv1"
)

// Serves one ReviewStream: many policy calls at the same time, each answered as soon as its outcome is known.
//
// The rules:
//
//   - An id is open from its call until its outcome is written. Each open id gets exactly one outcome, in any order:
//     a verdict, or a failure if its timeout is over, its document is missing, or the worker is at its limit. A
//     cancelled id gets none.
//   - If a call has the id of an open call, the first call is dropped and both get one failure: the gateway could
//     take the verdict of one for that of the other.
//   - Each call runs in a goroutine of its own, so no outcome waits for another call. A call counts as in flight
//     until its function has returned.
//   - The writer sends all known outcomes in one message, up to a size.
//   - Unwritten outcomes are limited: from a gateway that does not read, the worker reads no more.
//   - After the gateway half-closes, the open calls are answered, and the stream ends. If the stream breaks, all open
//     calls are cancelled.
//   - A stopping worker still answers new calls, because the gateway notices the stop a delay later. The stream ends
//     when no call is open and no message has arrived for quietPeriod.

// quietPeriod without calls means to a stopping worker that the gateway sends no more. The gateway learns of the stop
// from a health Watch, in the time of one message; half a second suffices on a loaded machine.
const quietPeriod = 500 * time.Millisecond

// reviewStream serves one stream, with one goroutine that reads, one that writes, and one for each call.
type reviewStream struct {
	service *service
	stream  workerv1.Worker_ReviewStreamServer

	wake    chan struct{} // an outcome to write, or the end of the stream
	written chan struct{} // the outbox may have room
	settled chan struct{} // no open call is worth waiting for

	mu          sync.Mutex
	open        map[uint64]*openCall
	slow        int // number of open calls for which batching does not wait (awaitBatch)
	emptyDelays int // consecutive waits without a new outcome
	outbox      *outbox
	halfClosed  bool  // the gateway has half-closed
	broken      error // error of Recv
	lastMessage time.Time
	quietSince  time.Time // when the worker began to stop; zero: it has not
}

// openCall is a call without an outcome.
type openCall struct {
	call   *workerv1.PolicyCall
	cancel context.CancelFunc
}

func newReviewStream(service *service, stream workerv1.Worker_ReviewStreamServer) *reviewStream {
	return &reviewStream{
		service: service,
		stream:  stream,
		wake:    make(chan struct{}, 1),
		written: make(chan struct{}, 1),
		settled: make(chan struct{}, 1),
		open:    map[uint64]*openCall{},
		outbox:  newOutbox(),
	}
}

// run serves the stream until the gateway half-closes it, the worker stops, or the stream breaks. Then the stream's
// context cancels running calls.
func (s *reviewStream) run() error {
	go s.read()
	stopping := s.service.stopping
	quiet := time.NewTimer(0)
	quiet.Stop()
	defer quiet.Stop()
	delay := time.NewTimer(0)
	delay.Stop()
	defer delay.Stop()
	for {
		// Goroutines that are about to answer run first, so that their outcomes join the message.
		runtime.Gosched()
		batch, after, end := s.next()
		if batch != nil {
			if err := s.stream.Send(batch); err != nil {
				return err
			}
			notify(s.written)
			continue
		}
		if end != nil {
			return end()
		}
		if after > 0 {
			quiet.Reset(after)
		}
		select {
		case <-s.wake:
			s.awaitBatch(delay)
		case <-quiet.C:
		case <-stopping:
			stopping = nil
			s.stop()
		case <-s.stream.Context().Done():
			return status.FromContextError(s.stream.Context().Err()).Err()
		}
	}
}

// batchDelay is how long an outcome waits for those of other open calls, to be sent in one message. A message costs
// the gateway some 100 µs, whatever the number of outcomes in it. In an idle process Go's timers are up to a
// millisecond late (it polls sockets in whole milliseconds), so a delay can take that long.
const batchDelay = 100 * time.Microsecond

// maxEmptyDelays consecutive delays without a new outcome mean that the open calls do not wait for a processor. One
// is not enough: on a busy machine no call may have run.
const maxEmptyDelays = 4

// awaitBatch waits for batchDelay, or until no call is open. After maxEmptyDelays it no longer waits for the calls
// that are open: one slow policy must not delay the others.
func (s *reviewStream) awaitBatch(delay *time.Timer) {
	s.mu.Lock()
	before := len(s.outbox.byID)
	worthIt := len(s.open) > s.slow && before > 0
	select {
	case <-s.settled: // of earlier calls
	default:
	}
	s.mu.Unlock()
	if !worthIt {
		return
	}
	delay.Reset(batchDelay)
	select {
	case <-s.settled:
		delay.Stop()
	case <-delay.C:
		s.mu.Lock()
		if len(s.outbox.byID) > before {
			s.emptyDelays = 0
		} else if s.emptyDelays++; s.emptyDelays == maxEmptyDelays {
			s.slow, s.emptyDelays = len(s.open), 0
		}
		s.mu.Unlock()
	case <-s.stream.Context().Done():
	}
}

// next returns the batch to write, or how the stream ends, or the time until the next check (0: when woken).
func (s *reviewStream) next() (batch *workerv1.ReviewStreamResponse, after time.Duration, end func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return nil, 0, func() error { return s.broken }
	}
	if batch = s.outbox.batch(); batch != nil || len(s.open) > 0 {
		return batch, 0, nil
	}
	if s.halfClosed {
		return nil, 0, func() error { return nil }
	}
	if s.quietSince.IsZero() {
		return nil, 0, nil
	}
	latest := s.quietSince
	if s.lastMessage.After(latest) {
		latest = s.lastMessage
	}
	if after = quietPeriod - time.Since(latest); after > 0 {
		return nil, after, nil
	}
	return nil, 0, func() error { return nil }
}

func (s *reviewStream) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quietSince = time.Now()
}

// ------------------------------------------------------------------------------------------------------------------ in

func (s *reviewStream) read() {
	for s.roomForMore() {
		batch, err := s.stream.Recv()
		if err != nil {
			s.mu.Lock()
			if errors.Is(err, io.EOF) {
				s.halfClosed = true
			} else {
				s.broken = err
			}
			s.mu.Unlock()
			notify(s.wake)
			return
		}
		s.take(batch, time.Now())
		notify(s.wake)
	}
}

// roomForMore waits until the outbox is below its limits. False: the stream has ended.
func (s *reviewStream) roomForMore() bool {
	for {
		s.mu.Lock()
		full := len(s.outbox.byID) > s.service.limits.InFlight || s.outbox.bytes > s.service.limits.MessageBytes
		s.mu.Unlock()
		if !full {
			return true
		}
		select {
		case <-s.written:
		case <-s.stream.Context().Done():
			return false
		}
	}
}

func (s *reviewStream) take(batch *workerv1.ReviewStreamRequest, arrived time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastMessage = arrived
	for _, item := range batch.GetItems() {
		switch received := item.GetItem().(type) {
		case *workerv1.ReviewStreamRequest_RequestItem_Call:
			s.begin(item.GetId(), received.Call, batch.GetDocuments(), arrived)
		case *workerv1.ReviewStreamRequest_RequestItem_Cancel:
			s.drop(item.GetId())
		default: // from a newer version of the contract: "fields unknown to the receiver are ignored"
			slog.Debug(fmt.Sprintf("ignored an item without call or cancel (id %d)", item.GetId()))
		}
	}
}

// begin starts a call, or answers it at once with a failure.
func (s *reviewStream) begin(id uint64, call *workerv1.PolicyCall, documents [][]byte, arrived time.Time) {
	if s.open[id] != nil || s.outbox.holds(id) {
		s.drop(id)
		s.reject(id, call, fmt.Sprintf("the stream has an open call with id %d already: ids must be unique", id))
		return
	}
	document := documentOf(call)
	if source, is := call.GetDocumentSource().(*workerv1.PolicyCall_DocumentIndex); is {
		if int(source.DocumentIndex) >= len(documents) {
			s.reject(id, call, fmt.Sprintf("document_index is %d, and its message has %d documents", source.DocumentIndex, len(documents)))
			return
		}
		document = documents[source.DocumentIndex]
	}
	if !s.service.inFlight.enter() {
		s.reject(id, call, s.service.inFlight.refusal())
		return
	}
	opened := &openCall{call: call}
	var ctx context.Context
	if call.GetTimeout() == nil {
		ctx, opened.cancel = context.WithCancel(s.stream.Context())
	} else {
		ctx, opened.cancel = context.WithDeadline(s.stream.Context(), arrived.Add(call.GetTimeout().AsDuration()))
	}
	s.open[id] = opened
	go s.decide(ctx, id, opened, document)
}

// reject answers a call that is not started.
func (s *reviewStream) reject(id uint64, call *workerv1.PolicyCall, message string) {
	slog.Warn("policy call rejected: "+message, "uid", call.GetUid(), "policy", call.GetPolicy())
	s.outbox.put(id, failure(message, 0, ""))
}

// drop cancels the call with this id, for which the gateway no longer waits. It ignores an unknown id.
func (s *reviewStream) drop(id uint64) {
	s.outbox.drop(id)
	if opened := s.open[id]; opened != nil {
		opened.cancel()
		s.close(id)
	}
}

// close removes an id from the open ones. slow is a count without ids, at most the number of open calls.
func (s *reviewStream) close(id uint64) {
	delete(s.open, id)
	s.slow = min(s.slow, len(s.open))
	if len(s.open) <= s.slow {
		notify(s.settled)
	}
}

// ----------------------------------------------------------------------------------------------------------------- out

// decide answers an open call, in a goroutine of its own.
func (s *reviewStream) decide(ctx context.Context, id uint64, opened *openCall, document []byte) {
	defer opened.cancel()
	// At its timeout the call gets a failure, even if the policy ignores its context. It counts as in flight until it
	// returns.
	stopTimeout := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			s.answer(id, opened, nil)
		}
	})
	defer stopTimeout()
	deliver := func(outcome *workerv1.Outcome) {
		s.service.inFlight.leave()
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			outcome = nil // too late, or an error that reports the timeout
		}
		s.answer(id, opened, outcome)
	}
	if ctx.Err() != nil {
		deliver(nil)
		return
	}
	s.service.judge.answer(ctx, opened.call, document, deliver)
}

// answer queues the outcome of a call, if the call is still open; nil: its timeout is over.
func (s *reviewStream) answer(id uint64, opened *openCall, outcome *workerv1.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[id] != opened {
		return
	}
	s.close(id)
	if outcome == nil {
		outcome = s.service.judge.timeoutOutcome(opened.call)
	}
	s.outbox.put(id, outcome)
	notify(s.wake)
}

// notify wakes the receiver of a channel with a buffer of one, now or at its next receive.
func notify(channel chan struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}
