package worker_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"admission-gateway.dev/worker"
	"admission-gateway.dev/worker/workerv1"
)

var echoes = deciding("echoes", worker.Validating, func(_ context.Context, request *worker.Request) (worker.Answer, error) {
	return worker.Deny(string(request.Raw)), nil
})

func TestAFastCallOvertakesASlowOneOfTheSameMessage(t *testing.T) {
	release := make(chan struct{})
	slow := deciding("slow", worker.Validating, func(context.Context, *worker.Request) (worker.Answer, error) {
		<-release
		return nil, nil
	})
	stream := served(t, worker.Options{}, slow, sound).stream(t)
	stream.send(item(1, call("slow", worker.Validating)), item(2, call("sound", worker.Validating)))
	if id, _ := stream.next(); id != 2 {
		t.Errorf("%d was first", id)
	}
	close(release)
	if id, outcome := stream.next(); id != 1 || outcome.GetAllow() == nil {
		t.Error(id, outcome)
	}
}

func TestEachOfAThousandCallsInOneMessageIsAnswered(t *testing.T) {
	stream := served(t, worker.Options{}, echoes).stream(t)
	var items []*workerv1.ReviewStreamRequest_RequestItem
	for id := range uint64(1000) {
		items = append(items, item(id, callAbout("echoes", worker.Validating, fmt.Sprintf(`{"name":"%d"}`, id))))
	}
	stream.send(items...)
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	answered := map[uint64]bool{}
	for range 1000 {
		id, outcome := stream.next()
		if outcome.GetDeny().GetMessage() != fmt.Sprintf(`{"name":"%d"}`, id) || answered[id] {
			t.Error(id, outcome)
		}
		answered[id] = true
	}
	stream.expectEnd()
}

func TestDocumentsAreFoundByTheirIndexInTheSameMessage(t *testing.T) {
	stream := served(t, worker.Options{}, echoes).stream(t)
	indexed := func(index uint32) *workerv1.PolicyCall {
		called := call("echoes", worker.Validating)
		called.DocumentSource = &workerv1.PolicyCall_DocumentIndex{DocumentIndex: index}
		return called
	}
	batch := &workerv1.ReviewStreamRequest{
		Documents: [][]byte{[]byte(`{"name":"0"}`), []byte(`{"name":"1"}`)},
		Items: []*workerv1.ReviewStreamRequest_RequestItem{
			item(0, indexed(0)), item(1, indexed(1)), item(2, indexed(1)), item(3, indexed(2)),
		},
	}
	if err := stream.Send(batch); err != nil {
		t.Fatal(err)
	}
	wanted := map[uint64]string{0: `{"name":"0"}`, 1: `{"name":"1"}`, 2: `{"name":"1"}`, 3: "document_index is 2, and its message has 2 documents"}
	for range wanted {
		id, outcome := stream.next()
		if text := outcome.GetDeny().GetMessage() + outcome.GetFailure().GetMessage(); text != wanted[id] {
			t.Error(id, text)
		}
	}
}

func TestACancelStopsThePolicyAndSendsNoOutcome(t *testing.T) {
	policy, begun, ended := waiting()
	stream := served(t, worker.Options{}, policy, sound).stream(t)
	stream.send(item(1, call("waits", worker.Validating)))
	await(t, begun, "the call")
	stream.send(cancelOf(1), cancelOf(99))
	if why := await(t, ended, "the end of the work"); !errors.Is(why, context.Canceled) {
		t.Error(why)
	}
	stream.send(item(1, call("sound", worker.Validating))) // the id is free again
	if id, outcome := stream.next(); id != 1 || outcome.GetAllow() == nil {
		t.Error(id, outcome)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	stream.expectEnd()
}

func TestACallWhoseTimeoutIsOverIsAFailureAndItsPolicyIsCancelled(t *testing.T) {
	policy, begun, ended := waiting()
	stream := served(t, worker.Options{}, policy, sound).stream(t)
	short, none := call("waits", worker.Validating), call("sound", worker.Validating)
	none.Timeout = durationpb.New(0)
	for given := 50 * time.Millisecond; len(begun) == 0; given *= 2 { // it may be over before anything has begun
		short.Timeout = durationpb.New(given)
		stream.send(item(1, short), item(2, none))
		text := map[uint64]string{
			1: fmt.Sprintf("policy waits: no answer within the call's timeout of %g s", given.Seconds()),
			2: "policy sound: no answer within the call's timeout of 0 s",
		}
		for range text {
			id, outcome := stream.next()
			if outcome.GetFailure().GetMessage() != text[id] || outcome.GetVersion() != "1" {
				t.Fatal(id, outcome)
			}
		}
	}
	if why := await(t, ended, "the end of the work"); !errors.Is(why, context.DeadlineExceeded) {
		t.Error(why)
	}
}

func TestACallWhosePolicyIgnoresItsTimeoutIsAFailure(t *testing.T) {
	release := make(chan struct{})
	deaf := deciding("deaf", worker.Validating, func(context.Context, *worker.Request) (worker.Answer, error) {
		<-release
		return nil, nil
	})
	stream := served(t, worker.Options{}, deaf).stream(t)
	called := call("deaf", worker.Validating)
	called.Timeout = durationpb.New(50 * time.Millisecond)
	stream.send(item(1, called))
	if _, outcome := stream.next(); !strings.Contains(outcome.GetFailure().GetMessage(), "no answer within") {
		t.Error(outcome)
	}
	close(release) // its late answer is dropped
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	stream.expectEnd()
}

func TestADuplicateIdGetsOneFailureForBothCalls(t *testing.T) {
	policy, begun, ended := waiting()
	stream := served(t, worker.Options{}, policy, sound).stream(t)
	stream.send(item(5, call("waits", worker.Validating)))
	await(t, begun, "the first call")
	stream.send(item(5, call("sound", worker.Validating)))
	if id, outcome := stream.next(); id != 5 || !strings.Contains(outcome.GetFailure().GetMessage(), "an open call with id 5 already") {
		t.Error(id, outcome)
	}
	await(t, ended, "the end of the first")
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	stream.expectEnd()
}

func TestOpenCallsAreAnsweredAfterAHalfClose(t *testing.T) {
	release := make(chan struct{})
	slow := deciding("slow", worker.Validating, func(context.Context, *worker.Request) (worker.Answer, error) {
		<-release
		return nil, nil
	})
	stream := served(t, worker.Options{}, slow).stream(t)
	stream.send(item(1, call("slow", worker.Validating)))
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	close(release)
	if id, outcome := stream.next(); id != 1 || outcome.GetAllow() == nil {
		t.Error(id, outcome)
	}
	stream.expectEnd()
}

func TestABrokenStreamCancelsAllOpenCalls(t *testing.T) {
	policy, begun, ended := waiting()
	connected := served(t, worker.Options{}, policy)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	stream, err := connected.ReviewStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for id := range uint64(3) {
		if err := stream.Send(&workerv1.ReviewStreamRequest{Items: []*workerv1.ReviewStreamRequest_RequestItem{item(id, call("waits", worker.Validating))}}); err != nil {
			t.Fatal(err)
		}
		await(t, begun, "a call")
	}
	leave()
	for range 3 {
		await(t, ended, "the end of the work")
	}
}

func TestTheWorkerStopsReadingFromAPeerThatDoesNotRead(t *testing.T) {
	// Each answer has 1 MiB, and unwritten outcomes are limited to 8 MiB. So most of 200 calls stay unread until the
	// peer reads.
	judged := make(chan struct{}, 1000)
	floods := deciding("floods", worker.Validating, func(context.Context, *worker.Request) (worker.Answer, error) {
		judged <- struct{}{}
		return worker.Deny(strings.Repeat("x", 1<<20)), nil
	})
	connected := served(t, worker.Options{Limits: worker.Limits{MessageBytes: 8 << 20}}, floods, sound)
	stream := connected.stream(t)
	const calls = 200
	sent := make(chan error, 1)
	go func() {
		large := callAbout("floods", worker.Validating, `{"name":"`+strings.Repeat("x", 1<<18)+`"}`)
		for id := range uint64(calls) {
			if err := stream.Send(&workerv1.ReviewStreamRequest{Items: []*workerv1.ReviewStreamRequest_RequestItem{item(id, large)}}); err != nil {
				sent <- err
				return
			}
		}
		sent <- stream.CloseSend()
	}()
	for range 8 {
		await(t, judged, "the calls that are taken")
	}
	if connected.review(t, call("sound", worker.Validating)).GetAllow() == nil {
		t.Error("others should be served meanwhile")
	}
	select {
	case err := <-sent:
		t.Errorf("all calls were taken from a peer that has read nothing (%v)", err)
	default:
	}
	for range calls {
		if _, outcome := stream.next(); len(outcome.GetDeny().GetMessage()) != 1<<20 {
			t.Fatal(outcome)
		}
	}
	if err := await(t, sent, "the last call to be sent"); err != nil {
		t.Error(err)
	}
	stream.expectEnd()
}

func TestAnUnreadableMessageEndsOnlyItsStream(t *testing.T) {
	connected := served(t, worker.Options{Limits: worker.Limits{MessageBytes: 1000}}, sound)
	stream := connected.stream(t)
	if err := stream.Send(&workerv1.ReviewStreamRequest{Documents: [][]byte{make([]byte, 2000)}}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.ResourceExhausted {
		t.Error(err)
	}
	if connected.review(t, call("sound", worker.Validating)).GetAllow() == nil {
		t.Error("others should be served")
	}
}
