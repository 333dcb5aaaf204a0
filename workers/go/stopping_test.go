package worker_test

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"admission-gateway.dev/worker"
)

const service = "admission.worker.v1.Worker"

func TestHealthIsKnownForTheWorkerAndItsService(t *testing.T) {
	connected := served(t, worker.Options{}, sound)
	for _, name := range []string{"", service} {
		answer, err := connected.health.Check(within(t), &healthv1.HealthCheckRequest{Service: name})
		if err != nil || answer.GetStatus() != healthv1.HealthCheckResponse_SERVING {
			t.Error(name, answer, err)
		}
	}
	if _, err := connected.health.Check(within(t), &healthv1.HealthCheckRequest{Service: "other"}); status.Code(err) != codes.NotFound {
		t.Error(err)
	}
	watch, err := connected.health.Watch(within(t), &healthv1.HealthCheckRequest{Service: "other"})
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := watch.Recv(); answer.GetStatus() != healthv1.HealthCheckResponse_SERVICE_UNKNOWN {
		t.Error(answer, err)
	}
}

// stopped stops a server in the background, and returns a channel that is closed when it has stopped.
func stopped(server *worker.Server) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		server.Stop()
		close(done)
	}()
	return done
}

func TestAStoppingWorkerIsALameDuckFirst(t *testing.T) {
	policy, begun, _ := waiting()
	connected := served(t, worker.Options{Limits: worker.Limits{GracePeriod: time.Hour}}, policy, sound)
	watch, err := connected.health.Watch(within(t), &healthv1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := watch.Recv(); answer.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Fatal(answer, err)
	}
	stream, idle := connected.stream(t), connected.stream(t)
	stream.send(item(1, call("waits", worker.Validating))) // an open call: on a busy machine the worker could stop before the next messages
	await(t, begun, "the call")
	done := stopped(connected.server)
	if answer, err := watch.Recv(); answer.GetStatus() != healthv1.HealthCheckResponse_NOT_SERVING {
		t.Error(answer, err)
	}
	if _, err := watch.Recv(); err != io.EOF {
		t.Errorf("a watch should end: %v", err)
	}
	// "Whatever still comes is answered"
	stream.send(item(2, call("sound", worker.Validating)))
	if id, outcome := stream.next(); id != 2 || outcome.GetAllow() == nil {
		t.Error(id, outcome)
	}
	if connected.review(t, call("sound", worker.Validating)).GetAllow() == nil {
		t.Error("a Review that still comes should be answered")
	}
	stream.send(cancelOf(1))
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	stream.expectEnd()
	idle.expectEnd() // the client has not half-closed it, and sends nothing
	await(t, done, "the end")
}

func TestOpenCallsAreAnsweredBeforeTheEnd(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	slow := deciding("slow", worker.Validating, func(context.Context, *worker.Request) (worker.Answer, error) {
		begun <- struct{}{}
		<-release
		return nil, nil
	})
	connected := served(t, worker.Options{Limits: worker.Limits{GracePeriod: time.Hour}}, slow)
	stream := connected.stream(t)
	stream.send(item(1, call("slow", worker.Validating)))
	await(t, begun, "the call")
	done := stopped(connected.server)
	for {
		answer, err := connected.health.Check(within(t), &healthv1.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if answer.GetStatus() == healthv1.HealthCheckResponse_NOT_SERVING {
			break
		}
	}
	close(release)
	if id, outcome := stream.next(); id != 1 || outcome.GetAllow() == nil {
		t.Error(id, outcome)
	}
	stream.expectEnd()
	await(t, done, "the end")
}

func TestOpenCallsAreCancelledAfterTheGracePeriod(t *testing.T) {
	policy, begun, ended := waiting()
	connected := served(t, worker.Options{Limits: worker.Limits{GracePeriod: 100 * time.Millisecond}}, policy)
	stream := connected.stream(t)
	stream.send(item(1, call("waits", worker.Validating)))
	await(t, begun, "the call")
	done := stopped(connected.server)
	await(t, ended, "the end of the work")
	await(t, done, "the end")
	if _, err := stream.Recv(); err == nil || err == io.EOF {
		t.Error("the stream should break")
	}
}

func TestASilentConnectionDoesNotDelayTheStop(t *testing.T) {
	connected := served(t, worker.Options{Limits: worker.Limits{GracePeriod: 100 * time.Millisecond}}, sound)
	silent, err := net.Dial("tcp", connected.server.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	connected.review(t, call("sound", worker.Validating)) // accepted after it
	await(t, stopped(connected.server), "the end")
}
