package dev.admissiongateway.worker;

import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.Status;

/**
 * Serves calls with one request and one response. An unreadable request gets INVALID_ARGUMENT;
 * {@link Answering} handles all others.
 */
final class UnaryCalls<Q, R> implements ServerCallHandler<Methods.Received<Q>, R> {
    private final Answering<Q, R> answering;
    private final Traffic traffic;

    /** The handler of a request. */
    @FunctionalInterface
    interface Answering<Q, R> {
        /** Answers, now or later, with one call of a method of the reply. */
        void answer(Q request, Metadata headers, Reply<R> reply);
    }

    UnaryCalls(Traffic traffic, Answering<Q, R> answering) {
        this.traffic = traffic;
        this.answering = answering;
    }

    @Override
    public ServerCall.Listener<Methods.Received<Q>> startCall(
            ServerCall<Methods.Received<Q>, R> call, Metadata headers) {
        call.request(2); // as grpc-java does, to detect a second message, which is an error
        traffic.opened();
        return new Listener(call, headers);
    }

    /** The answer to a call. It may be sent in any thread; that of a cancelled call is dropped. */
    record Reply<R>(ServerCall<?, R> call) {
        void send(R response) {
            synchronized (call) {
                if (!call.isCancelled()) {
                    call.sendHeaders(new Metadata());
                    call.sendMessage(response);
                    call.close(Status.OK, new Metadata());
                }
            }
        }

        void refuse(Status status) {
            synchronized (call) {
                if (!call.isCancelled()) {
                    call.close(status, new Metadata());
                }
            }
        }
    }

    private final class Listener extends ServerCall.Listener<Methods.Received<Q>> {
        private final ServerCall<Methods.Received<Q>, R> call;
        private final Metadata headers;
        private Methods.Received<Q> received;

        Listener(ServerCall<Methods.Received<Q>, R> call, Metadata headers) {
            this.call = call;
            this.headers = headers;
        }

        @Override
        public void onMessage(Methods.Received<Q> message) {
            received = message;
        }

        @Override
        public void onHalfClose() {
            Reply<R> reply = new Reply<>(call);
            if (received == null) {
                reply.refuse(Status.INVALID_ARGUMENT.withDescription("the call has no request"));
            } else if (received.message() == null) {
                String error = "the request cannot be read: " + received.error();
                reply.refuse(Status.INVALID_ARGUMENT.withDescription(error));
            } else {
                answering.answer(received.message(), headers, reply);
            }
        }

        @Override
        public void onCancel() {
            traffic.closed();
        }

        @Override
        public void onComplete() {
            traffic.closed();
        }
    }
}
