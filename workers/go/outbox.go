package worker

import (
	"google.golang.org/protobuf/proto"

	"admission-gateway.dev/worker/workerv1"
)

// outbox holds the outcomes of a stream that are known and not yet written, the oldest first. It locks nothing.
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

// put adds an outcome. The id has none in here.
func (o *outbox) put(id uint64, outcome *workerv1.Outcome) {
	made := &letter{item: &workerv1.ReviewStreamResponse_ResponseItem{Id: id, Outcome: outcome}}
	made.size = proto.Size(made.item)
	o.queue = append(o.queue, made)
	o.byID[id] = made
	o.bytes += made.size
}

// holds says whether the outcome of an id is in here.
func (o *outbox) holds(id uint64) bool { return o.byID[id] != nil }

// drop takes back the outcome of an id, if it is in here. Its place in the queue is skipped when it comes to the
// front, which costs less than a search.
func (o *outbox) drop(id uint64) {
	if found := o.byID[id]; found != nil {
		found.dropped = true
		delete(o.byID, id)
		o.bytes -= found.size
	}
}

// batch takes the oldest outcomes that fit one message, the oldest one in any case; nil: there are none.
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
		o.queue = nil // lets go of the array that has grown
	}
	if len(items) == 0 {
		return nil
	}
	return &workerv1.ReviewStreamResponse{Items: items}
}
