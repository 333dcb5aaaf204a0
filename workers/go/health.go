package worker

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"admission-gateway.dev/worker/workerv1"
)

// The service grpc.health.v1, for the server as a whole and for its service.
//
// grpc-go's health server keeps every Watch open, which would delay a graceful stop until the grace period ends. Here
// a Watch ends after it has sent NOT_SERVING.

type health struct {
	healthv1.UnimplementedHealthServer

	stopping <-chan struct{}
}

// knows reports whether the service is the empty one (the server) or admission.worker.v1.Worker.
func (h *health) knows(service string) bool {
	return service == "" || service == workerv1.Worker_ServiceDesc.ServiceName
}

func (h *health) state() *healthv1.HealthCheckResponse {
	select {
	case <-h.stopping:
		return &healthv1.HealthCheckResponse{Status: healthv1.HealthCheckResponse_NOT_SERVING}
	default:
		return &healthv1.HealthCheckResponse{Status: healthv1.HealthCheckResponse_SERVING}
	}
}

// Check returns the current state. "the server ... SHOULD return NOT_FOUND" for an unknown service.
func (h *health) Check(_ context.Context, request *healthv1.HealthCheckRequest) (*healthv1.HealthCheckResponse, error) {
	if !h.knows(request.GetService()) {
		return nil, status.Error(codes.NotFound, fmt.Sprintf("unknown service %q", request.GetService()))
	}
	return h.state(), nil
}

// List returns the state of all services.
func (h *health) List(context.Context, *healthv1.HealthListRequest) (*healthv1.HealthListResponse, error) {
	return &healthv1.HealthListResponse{Statuses: map[string]*healthv1.HealthCheckResponse{
		"": h.state(), workerv1.Worker_ServiceDesc.ServiceName: h.state(),
	}}, nil
}

// Watch sends the current state, and the next one when the worker stops.
func (h *health) Watch(request *healthv1.HealthCheckRequest, stream healthv1.Health_WatchServer) error {
	unknown := &healthv1.HealthCheckResponse{Status: healthv1.HealthCheckResponse_SERVICE_UNKNOWN}
	now := h.state()
	if !h.knows(request.GetService()) {
		now = unknown
	}
	if err := stream.Send(now); err != nil {
		return err
	}
	select {
	case <-h.stopping:
	case <-stream.Context().Done():
		return status.FromContextError(stream.Context().Err()).Err()
	}
	if now.GetStatus() == healthv1.HealthCheckResponse_SERVING {
		return stream.Send(h.state())
	}
	return nil
}
