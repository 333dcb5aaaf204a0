package worker_test

import (
	"context"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"admission-gateway.dev/worker"
	"admission-gateway.dev/worker/workerv1"
)

// Helpers that call a worker over a real connection, as the gateway does.

// testTimeout limits how long a test waits. No test asserts durations.
const testTimeout = 30 * time.Second

// client of a served worker.
type client struct {
	workerv1.WorkerClient
	health     healthv1.HealthClient
	server     *worker.Server
	connection *grpc.ClientConn
}

// served serves policies until the test ends.
func served(t *testing.T, options worker.Options, policies ...worker.Registration) *client {
	t.Helper()
	made, err := worker.New("tested", "1", policies...)
	if err != nil {
		t.Fatal(err)
	}
	if options.Limits.GracePeriod == 0 {
		options.Limits.GracePeriod = -1 // or each test would end as a lame duck
	}
	server, err := made.Serve("127.0.0.1:0", options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	connected := connect(t, server.Address())
	connected.server = server
	return connected
}

// connect connects to a worker; without options, without TLS.
func connect(t *testing.T, address string, options ...grpc.DialOption) *client {
	t.Helper()
	if options == nil {
		options = []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	}
	most := grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(worker.DefaultMessageBytes), grpc.MaxCallSendMsgSize(worker.DefaultMessageBytes))
	connection, err := grpc.NewClient(address, append(options, most)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return &client{workerv1.NewWorkerClient(connection), healthv1.NewHealthClient(connection), nil, connection}
}

// within returns a context that ends after testTimeout.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// deciding returns a policy without settings and claims.
func deciding(name string, phase worker.Phase, judge func(ctx context.Context, request *worker.Request) (worker.Answer, error)) worker.Policy[worker.NoSettings] {
	return worker.Policy[worker.NoSettings]{
		Name: name, Phase: phase,
		Judge: func(ctx context.Context, request *worker.Request, _ worker.NoSettings) (worker.Answer, error) {
			return judge(ctx, request)
		},
	}
}

// answering returns a policy that always gives one answer.
func answering(name string, phase worker.Phase, answer worker.Answer) worker.Registration {
	return deciding(name, phase, func(context.Context, *worker.Request) (worker.Answer, error) { return answer, nil })
}

// call returns a call of a policy in a phase, with a small document.
func call(policy string, phase worker.Phase) *workerv1.PolicyCall {
	return callAbout(policy, phase, `{"operation":"CREATE","object":{"metadata":{"name":"a"}}}`)
}

func callAbout(policy string, phase worker.Phase, document string) *workerv1.PolicyCall {
	return &workerv1.PolicyCall{
		Policy:         policy,
		Phase:          workerv1.Phase(phase),
		Settings:       []byte("{}"),
		DocumentSource: &workerv1.PolicyCall_Document{Document: []byte(document)},
		Uid:            "uid-1",
	}
}

// review calls by Review.
func (c *client) review(t *testing.T, call *workerv1.PolicyCall) *workerv1.Outcome {
	t.Helper()
	answer, err := c.Review(within(t), &workerv1.ReviewRequest{Call: call})
	if err != nil {
		t.Fatal(err)
	}
	return answer.GetOutcome()
}

// reviewStream is an open ReviewStream.
type reviewStream struct {
	workerv1.Worker_ReviewStreamClient
	t    *testing.T
	left []*workerv1.ReviewStreamResponse_ResponseItem
}

func (c *client) stream(t *testing.T) *reviewStream {
	t.Helper()
	stream, err := c.ReviewStream(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return &reviewStream{stream, t, nil}
}

func item(id uint64, call *workerv1.PolicyCall) *workerv1.ReviewStreamRequest_RequestItem {
	return &workerv1.ReviewStreamRequest_RequestItem{Id: id, Item: &workerv1.ReviewStreamRequest_RequestItem_Call{Call: call}}
}

func cancelOf(id uint64) *workerv1.ReviewStreamRequest_RequestItem {
	return &workerv1.ReviewStreamRequest_RequestItem{
		Id: id, Item: &workerv1.ReviewStreamRequest_RequestItem_Cancel{Cancel: &workerv1.ReviewStreamRequest_Cancel{}},
	}
}

// send sends items in one message.
func (c *reviewStream) send(items ...*workerv1.ReviewStreamRequest_RequestItem) {
	c.t.Helper()
	if err := c.Send(&workerv1.ReviewStreamRequest{Items: items}); err != nil {
		c.t.Fatal(err)
	}
}

// next waits for the next outcome.
func (c *reviewStream) next() (uint64, *workerv1.Outcome) {
	c.t.Helper()
	for len(c.left) == 0 {
		batch, err := c.Recv()
		if err != nil {
			c.t.Fatal(err)
		}
		c.left = batch.GetItems()
	}
	next := c.left[0]
	c.left = c.left[1:]
	return next.GetId(), next.GetOutcome()
}

// expectEnd waits for the end of the stream, and fails if more outcomes arrive.
func (c *reviewStream) expectEnd() {
	c.t.Helper()
	if len(c.left) > 0 {
		c.t.Fatalf("more came: %v", c.left)
	}
	if batch, err := c.Recv(); err != io.EOF {
		c.t.Fatalf("the stream should end with OK: %v %v", batch, err)
	}
}

// await waits until something is closed or sent.
func await[T any](t *testing.T, channel <-chan T, what string) T {
	t.Helper()
	select {
	case value := <-channel:
		return value
	case <-time.After(testTimeout):
		t.Fatal("timed out waiting for " + what)
		panic("unreachable")
	}
}
