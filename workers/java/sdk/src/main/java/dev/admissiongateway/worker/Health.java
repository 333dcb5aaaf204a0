package dev.admissiongateway.worker;

import io.grpc.Metadata;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.ServerCall;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;
import io.grpc.health.v1.HealthCheckRequest;
import io.grpc.health.v1.HealthCheckResponse;
import io.grpc.health.v1.HealthCheckResponse.ServingStatus;

import java.util.Set;

/**
 * The service grpc.health.v1, for the server as a whole (the empty name) and for its service.
 *
 * <p>The implementation of grpc-services keeps every Watch open, which would delay a graceful stop
 * until the grace period ends. Here a Watch ends after it has sent NOT_SERVING.
 */
final class Health {
    private static final String SERVICE = "grpc.health.v1.Health";
    private static final Set<String> NAMES = Set.of("", Methods.SERVICE);

    private final StopSignal stopping;
    private final Traffic traffic;

    Health(StopSignal stopping, Traffic traffic) {
        this.stopping = stopping;
        this.traffic = traffic;
    }

    ServerServiceDefinition definition() {
        HealthCheckRequest input = HealthCheckRequest.getDefaultInstance();
        HealthCheckResponse output = HealthCheckResponse.getDefaultInstance();
        return ServerServiceDefinition.builder(SERVICE)
                .addMethod(
                        Methods.method(SERVICE, "Check", MethodType.UNARY, input, output),
                        new UnaryCalls<>(
                                traffic, (request, headers, reply) -> check(request, reply)))
                .addMethod(
                        Methods.method(
                                SERVICE, "Watch", MethodType.SERVER_STREAMING, input, output),
                        this::watch)
                .build();
    }

    /** NOT_FOUND for an unknown service: "the server ... SHOULD return NOT_FOUND". */
    private void check(HealthCheckRequest request, UnaryCalls.Reply<HealthCheckResponse> reply) {
        if (NAMES.contains(request.getService())) {
            reply.send(
                    response(
                            stopping.isBegun()
                                    ? ServingStatus.NOT_SERVING
                                    : ServingStatus.SERVING));
        } else {
            String name = "unknown service " + Json.quoted(request.getService());
            reply.refuse(Status.NOT_FOUND.withDescription(name));
        }
    }

    private ServerCall.Listener<Methods.Received<HealthCheckRequest>> watch(
            ServerCall<Methods.Received<HealthCheckRequest>, HealthCheckResponse> call,
            Metadata headers) {
        call.request(2);
        return new Watch(call);
    }

    private static HealthCheckResponse response(ServingStatus status) {
        return HealthCheckResponse.newBuilder().setStatus(status).build();
    }

    /** Sends the current state, and the next one when the worker stops. */
    private final class Watch extends ServerCall.Listener<Methods.Received<HealthCheckRequest>> {
        private final ServerCall<?, HealthCheckResponse> call;
        private final Runnable stop = this::stop;
        private boolean known;
        private boolean ended;

        Watch(ServerCall<?, HealthCheckResponse> call) {
            this.call = call;
        }

        @Override
        public void onMessage(Methods.Received<HealthCheckRequest> received) {
            synchronized (this) {
                if (received.message() == null) {
                    ended = true;
                    String error = "the request cannot be read: " + received.error();
                    call.close(Status.INVALID_ARGUMENT.withDescription(error), new Metadata());
                    return;
                }
                known = NAMES.contains(received.message().getService());
                call.sendHeaders(new Metadata());
                if (!stopping.isBegun()) {
                    call.sendMessage(
                            response(
                                    known ? ServingStatus.SERVING : ServingStatus.SERVICE_UNKNOWN));
                }
            }
            stopping.onStop(stop);
        }

        private synchronized void stop() {
            if (!ended && !call.isCancelled()) {
                ended = true;
                call.sendMessage(
                        response(
                                known ? ServingStatus.NOT_SERVING : ServingStatus.SERVICE_UNKNOWN));
                call.close(Status.OK, new Metadata());
            }
        }

        @Override
        public void onCancel() {
            stopping.remove(stop);
        }

        @Override
        public void onComplete() {
            stopping.remove(stop);
        }
    }
}
