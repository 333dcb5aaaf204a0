package worker

import (
	"google.golang.org/protobuf/proto"

	"admission-gateway.dev/worker/workerv1"
)

// outbox queues the outcomes of a stream that are not yet written, the oldest first. It is not safe for concurrent
// use.
type outbox struct {
	queue []*letter
	byID  map[uint64]*letter
	bytes int
}

type letter struct {
	item    *workerv1.ReviewStreamResponse_ResponseItem
	size    int
	dropped bool
}

func newOutbox() *outbox { return &outbox{byID: map[uint64]*letter{}} }

// put adds an outcome, whose id is not in the outbox.
func (o *outbox) put(id uint64, outcome *workerv1.Outcome) {
	made := &letter{item: &workerv1.ReviewStreamResponse_ResponseItem{Id: id, Outcome: outcome}}
	made.size = proto.Size(made.item)
	o.queue = append(o.queue, made)
	o.byID[id] = made
	o.bytes += made.size
}

// holds reports whether the outbox has an outcome for the id.
func (o *outbox) holds(id uint64) bool { return o.byID[id] != nil }

// drop removes the outcome of an id, if the outbox has one. Its place in the queue stays, and is skipped later, which
// costs less than a search.
func (o *outbox) drop(id uint64) {
	if found := o.byID[id]; found != nil {
		found.dropped = true
		delete(o.byID, id)
		o.bytes -= found.size
	}
}

// batch removes and returns the oldest outcomes that fit into one message, at least one. nil: the outbox is empty.
func (o *outbox) batch() *workerv1.ReviewStreamResponse {
	var items []*workerv1.ReviewStreamResponse_ResponseItem
	room, taken := batchBytes, 0
	for _, one := range o.queue {
		if !one.dropped {
			room -= one.size + envelopeBytes
			if room < 0 && len(items) > 0 {
				break
			}
			items = append(items, one.item)
			delete(o.byID, one.item.Id)
			o.bytes -= one.size
		}
		taken++
	}
	o.queue = o.queue[taken:]
	if len(o.queue) == 0 {
		o.queue = nil // frees the array
	}
	if len(items) == 0 {
		return nil
	}
	return &workerv1.ReviewStreamResponse{Items: items}
}
