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

// One ReviewStream: many calls over one connection, each answered as soon as it is known.
//
// The rules:
//
//   - An id is open from its call until its outcome is written. Each open id gets exactly one outcome, in any order:
//     a verdict, or a failure when its time is over, its document is not there, or the worker is full. A cancelled
//     one gets none.
//   - An id that comes again while it is open is two questions with one name: the first is dropped and one failure
//     is the answer to both, since a verdict could be taken for the other's.
//   - Each call runs in a goroutine of its own, so an outcome waits for no other one. A call holds its place in
//     flight until its function has really ended.
//   - Everything that is known when the writer looks travels in one message, up to a size.
//   - A gateway that does not read its answers is not read either: what is not written is bounded.
//   - When the gateway half-closes, what is open is answered, and the stream ends. When it breaks, everything open
//     is cancelled.
//   - Told to stop, the worker answers what still comes, until nothing is open and nothing has come for a while: the
//     gateway needs a moment to hear of it.

// quietPeriod is how long nothing must have come before a worker that is told to stop takes it that nothing will. A
// gateway hears of the stop over a Watch, in the time of one message; half a second is that on a loaded machine.
const quietPeriod = 500 * time.Millisecond

// conversation serves one stream: a goroutine that reads, one that writes, and one for each call.
type conversation struct {
	service *service
	stream  workerv1.Worker_ReviewStreamServer

	wake    chan struct{} // something to write, or an end to see
	written chan struct{} // there may be room again
	settled chan struct{} // nobody is left who is worth a moment

	mu         sync.Mutex
	open       map[uint64]*openCall
	slow       int // so many of those that are open are not waited for (gather)
	vain       int // moments on end that brought nothing
	outbox     *outbox
	noMore     bool  // the gateway has half-closed
	broken     error // why nothing can be read any more
	lastCame   time.Time
	quietSince time.Time // when the worker was told to stop; zero: it was not
}

// openCall is a call without an outcome.
type openCall struct {
	call   *workerv1.PolicyCall
	cancel context.CancelFunc
}

func newConversation(service *service, stream workerv1.Worker_ReviewStreamServer) *conversation {
	return &conversation{
		service: service,
		stream:  stream,
		wake:    make(chan struct{}, 1),
		written: make(chan struct{}, 1),
		settled: make(chan struct{}, 1),
		open:    map[uint64]*openCall{},
		outbox:  newOutbox(),
	}
}

// run answers until the gateway half-closes, the worker stops, or the stream breaks. Whoever still runs then is
// cancelled by the stream's context.
func (c *conversation) run() error {
	go c.read()
	stopping := c.service.stopping
	quiet := time.NewTimer(0)
	quiet.Stop()
	defer quiet.Stop()
	moment := time.NewTimer(0)
	moment.Stop()
	defer moment.Stop()
	for {
		// Let goroutines that are about to answer do so first: then it travels in one message.
		runtime.Gosched()
		batch, after, end := c.next()
		if batch != nil {
			if err := c.stream.Send(batch); err != nil {
				return err
			}
			nudge(c.written)
			continue
		}
		if end != nil {
			return end()
		}
		if after > 0 {
			quiet.Reset(after)
		}
		select {
		case <-c.wake:
			c.gather(moment)
		case <-quiet.C:
		case <-stopping:
			stopping = nil
			c.stop()
		case <-c.stream.Context().Done():
			return status.FromContextError(c.stream.Context().Err()).Err()
		}
	}
}

// gatherFor is how long an outcome waits for others that are being worked on, so that they travel in one message. A
// message costs the gateway some 100 µs, which it shares among all that is in it. Where nothing else is to be done Go's
// timers come a millisecond late (it waits for its sockets in whole milliseconds), so that is what a moment can take.
const gatherFor = 100 * time.Microsecond

// vainMoments on end that brought nothing say that what is open waits for something else than a processor. One says
// little: on a busy machine nobody may have run.
const vainMoments = 4

// gather waits so long, or until nothing is open any more. After some moments in vain nobody waits again for what is
// open then: one slow policy must not delay whatever is called beside it.
func (c *conversation) gather(moment *time.Timer) {
	c.mu.Lock()
	before := len(c.outbox.byID)
	worthIt := len(c.open) > c.slow && before > 0
	select {
	case <-c.settled: // of what was open before
	default:
	}
	c.mu.Unlock()
	if !worthIt {
		return
	}
	moment.Reset(gatherFor)
	select {
	case <-c.settled:
		moment.Stop()
	case <-moment.C:
		c.mu.Lock()
		if len(c.outbox.byID) > before {
			c.vain = 0
		} else if c.vain++; c.vain == vainMoments {
			c.slow, c.vain = len(c.open), 0
		}
		c.mu.Unlock()
	case <-c.stream.Context().Done():
	}
}

// next is what is to be written; or how the stream ends; or after how long to look again (0: when woken).
func (c *conversation) next() (batch *workerv1.ReviewStreamResponse, after time.Duration, end func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		return nil, 0, func() error { return c.broken }
	}
	if batch = c.outbox.batch(); batch != nil || len(c.open) > 0 {
		return batch, 0, nil
	}
	if c.noMore {
		return nil, 0, func() error { return nil }
	}
	if c.quietSince.IsZero() {
		return nil, 0, nil
	}
	latest := c.quietSince
	if c.lastCame.After(latest) {
		latest = c.lastCame
	}
	if after = quietPeriod - time.Since(latest); after > 0 {
		return nil, after, nil
	}
	return nil, 0, func() error { return nil }
}

func (c *conversation) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.quietSince = time.Now()
}

// ------------------------------------------------------------------------------------------------------------------ in

func (c *conversation) read() {
	for c.roomForMore() {
		batch, err := c.stream.Recv()
		if err != nil {
			c.mu.Lock()
			if errors.Is(err, io.EOF) {
				c.noMore = true
			} else {
				c.broken = err
			}
			c.mu.Unlock()
			nudge(c.wake)
			return
		}
		c.take(batch, time.Now())
		nudge(c.wake)
	}
}

// roomForMore waits until what is not written is within its bounds. False: the stream is over.
func (c *conversation) roomForMore() bool {
	for {
		c.mu.Lock()
		full := len(c.outbox.byID) > c.service.limits.InFlight || c.outbox.bytes > c.service.limits.MessageBytes
		c.mu.Unlock()
		if !full {
			return true
		}
		select {
		case <-c.written:
		case <-c.stream.Context().Done():
			return false
		}
	}
}

func (c *conversation) take(batch *workerv1.ReviewStreamRequest, arrived time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastCame = arrived
	for _, item := range batch.GetItems() {
		switch called := item.GetItem().(type) {
		case *workerv1.ReviewStreamRequest_RequestItem_Call:
			c.begin(item.GetId(), called.Call, batch.GetDocuments(), arrived)
		case *workerv1.ReviewStreamRequest_RequestItem_Cancel:
			c.drop(item.GetId())
		default: // of a newer contract: "fields unknown to the receiver are ignored"
			slog.Debug(fmt.Sprintf("an item without call or cancel was ignored (id %d)", item.GetId()))
		}
	}
}

// begin takes a call, or answers it at once.
func (c *conversation) begin(id uint64, call *workerv1.PolicyCall, documents [][]byte, arrived time.Time) {
	if c.open[id] != nil || c.outbox.holds(id) {
		c.drop(id)
		c.refuse(id, call, fmt.Sprintf("the stream has an open call with id %d already: ids must be unique", id))
		return
	}
	document := documentOf(call)
	if source, is := call.GetDocumentSource().(*workerv1.PolicyCall_DocumentIndex); is {
		if int(source.DocumentIndex) >= len(documents) {
			c.refuse(id, call, fmt.Sprintf("document_index is %d, and its message has %d documents", source.DocumentIndex, len(documents)))
			return
		}
		document = documents[source.DocumentIndex]
	}
	if !c.service.inFlight.enter() {
		c.refuse(id, call, c.service.inFlight.refusal())
		return
	}
	opened := &openCall{call: call}
	var ctx context.Context
	if call.GetTimeout() == nil {
		ctx, opened.cancel = context.WithCancel(c.stream.Context())
	} else {
		ctx, opened.cancel = context.WithDeadline(c.stream.Context(), arrived.Add(call.GetTimeout().AsDuration()))
	}
	c.open[id] = opened
	go c.judge(ctx, id, opened, document)
}

// refuse answers a call that is not taken.
func (c *conversation) refuse(id uint64, call *workerv1.PolicyCall, message string) {
	slog.Warn("a call was refused: "+message, "uid", call.GetUid(), "policy", call.GetPolicy())
	c.outbox.put(id, failure(message, 0, ""))
}

// drop says that nobody waits for this id any more. An unknown id is ignored.
func (c *conversation) drop(id uint64) {
	c.outbox.drop(id)
	if opened := c.open[id]; opened != nil {
		opened.cancel()
		c.close(id)
	}
}

// close says that an id is open no longer. Which ones are slow is not kept: those that are open at most.
func (c *conversation) close(id uint64) {
	delete(c.open, id)
	c.slow = min(c.slow, len(c.open))
	if len(c.open) <= c.slow {
		nudge(c.settled)
	}
}

// ----------------------------------------------------------------------------------------------------------------- out

// judge answers an open call, in a goroutine of its own.
func (c *conversation) judge(ctx context.Context, id uint64, opened *openCall, document []byte) {
	defer opened.cancel()
	// A policy that does not look at its context is not waited for; its place is free when it has ended.
	unheard := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			c.answer(id, opened, nil)
		}
	})
	defer unheard()
	deliver := func(outcome *workerv1.Outcome) {
		c.service.inFlight.leave()
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			outcome = nil // late, or an error that says so
		}
		c.answer(id, opened, outcome)
	}
	if ctx.Err() != nil {
		deliver(nil)
		return
	}
	c.service.judge.answer(ctx, opened.call, document, opened.call.GetTraceparent(), deliver)
}

// answer puts the outcome of a call that is still open to what will be written; nil: its time is over.
func (c *conversation) answer(id uint64, opened *openCall, outcome *workerv1.Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[id] != opened {
		return
	}
	c.close(id)
	if outcome == nil {
		outcome = c.service.judge.timedOut(opened.call)
	}
	c.outbox.put(id, outcome)
	nudge(c.wake)
}

// nudge wakes whoever waits on a channel of one place, now or when it looks next.
func nudge(channel chan struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}
