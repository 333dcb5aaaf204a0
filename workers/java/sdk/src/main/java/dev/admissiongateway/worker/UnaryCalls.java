package dev.admissiongateway.worker;

import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.Status;

/**
 * Serves calls of one request and one response. What cannot be read is INVALID_ARGUMENT; everything
 * else is up to the {@link Answering}.
 */
final class UnaryCalls<Q, R> implements ServerCallHandler<Methods.Received<Q>, R> {
    private final Answering<Q, R> answering;
    private final Traffic traffic;

    /** What a call does with its request. */
    @FunctionalInterface
    interface Answering<Q, R> {
        /** Answers, now or later, by calling one of the reply's methods once. */
        void answer(Q request, Metadata headers, Reply<R> reply);
    }

    UnaryCalls(Traffic traffic, Answering<Q, R> answering) {
        this.traffic = traffic;
        this.answering = answering;
    }

    @Override
    public ServerCall.Listener<Methods.Received<Q>> startCall(
            ServerCall<Methods.Received<Q>, R> call, Metadata headers) {
        call.request(
                2); // as grpc-java's own: a second message would be the client's mistake, and be
                    // noticed
        traffic.opened();
        return new Listener(call, headers);
    }

    /**
     * The one answer to a call. May be given in any thread; what comes for a cancelled call is
     * dropped.
     */
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
                String mistake = "the request cannot be read: " + received.mistake();
                reply.refuse(Status.INVALID_ARGUMENT.withDescription(mistake));
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
