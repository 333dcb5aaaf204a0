package dev.admissiongateway.worker;

import admission.worker.v1.WorkerOuterClass.DescribeRequest;
import admission.worker.v1.WorkerOuterClass.DescribeResponse;
import admission.worker.v1.WorkerOuterClass.PolicyCall;
import admission.worker.v1.WorkerOuterClass.ReviewRequest;
import admission.worker.v1.WorkerOuterClass.ReviewResponse;
import admission.worker.v1.WorkerOuterClass.ReviewStreamRequest;
import admission.worker.v1.WorkerOuterClass.ReviewStreamResponse;
import admission.worker.v1.WorkerOuterClass.ValidateSettingsRequest;
import admission.worker.v1.WorkerOuterClass.ValidateSettingsResponse;

import com.google.protobuf.ByteString;

import io.grpc.Context;
import io.grpc.Metadata;
import io.grpc.ServerCall;
import io.grpc.ServerServiceDefinition;
import io.grpc.Status;

import java.util.concurrent.Executor;
import java.util.concurrent.ScheduledExecutorService;

/**
 * The gRPC service of one worker.
 *
 * <p>Unreadable messages get INVALID_ARGUMENT, calls above the limit RESOURCE_EXHAUSTED, all others
 * a response. A gRPC status is a failure of the call, never a verdict.
 *
 * @param description the response of Describe
 * @param caller calls the policies
 * @param limits of the worker
 * @param inFlight counts calls over all connections
 * @param stopping signals the stop of the worker
 * @param traffic counts calls and connections
 * @param executor writes streams
 * @param clock runs timeouts
 */
record Service(
        DescribeResponse description,
        PolicyCaller caller,
        Limits limits,
        InFlight inFlight,
        StopSignal stopping,
        Traffic traffic,
        Executor executor,
        ScheduledExecutorService clock) {
    private static final Metadata.Key<String> TRACEPARENT =
            Metadata.Key.of("traceparent", Metadata.ASCII_STRING_MARSHALLER);

    private static final Metadata.Key<String> TRACESTATE =
            Metadata.Key.of("tracestate", Metadata.ASCII_STRING_MARSHALLER);

    ServerServiceDefinition definition() {
        return ServerServiceDefinition.builder(Methods.SERVICE)
                .addMethod(Methods.DESCRIBE, new UnaryCalls<>(traffic, this::describe))
                .addMethod(
                        Methods.VALIDATE_SETTINGS,
                        new UnaryCalls<>(traffic, this::validateSettings))
                .addMethod(Methods.REVIEW, new UnaryCalls<>(traffic, this::review))
                .addMethod(Methods.REVIEW_STREAM, this::reviewStream)
                .build();
    }

    private void describe(
            DescribeRequest request, Metadata headers, UnaryCalls.Reply<DescribeResponse> reply) {
        Log.info("described to gateway " + Json.quoted(request.getGatewayVersion()));
        reply.send(description);
    }

    /** Runs the check in another thread: an author's check may take long. */
    private void validateSettings(
            ValidateSettingsRequest request,
            Metadata headers,
            UnaryCalls.Reply<ValidateSettingsResponse> reply) {
        caller.besideCalls(
                () -> {
                    try {
                        reply.send(Descriptions.findings(caller.policies(), request));
                    } catch (Throwable error) { // nothing else would end the call
                        String message =
                                "the settings of policy "
                                        + Json.quoted(request.getPolicy())
                                        + " could not be checked: "
                                        + error.getClass().getSimpleName();
                        Log.failure(message, request.getPolicy(), "", error);
                        reply.refuse(Status.INTERNAL.withDescription(message));
                    }
                });
    }

    /**
     * Decides one policy call. gRPC cancels the context at the deadline, or when the client
     * cancels.
     */
    private void review(
            ReviewRequest request, Metadata headers, UnaryCalls.Reply<ReviewResponse> reply) {
        if (!inFlight.enter()) {
            reply.refuse(Status.RESOURCE_EXHAUSTED.withDescription(inFlight.refusal()));
            return;
        }
        PolicyCall call =
                request.getCall().toBuilder()
                        .setTraceparent(sent(headers, TRACEPARENT))
                        .setTracestate(sent(headers, TRACESTATE))
                        .build();
        // "document_index and timeout are not used here."
        ByteString document = call.hasDocument() ? call.getDocument() : null;
        Context.CancellableContext context = Context.current().withCancellation();
        caller.begin(
                new PolicyCaller.ReceivedCall(call, document),
                context,
                outcome -> {
                    inFlight.leave();
                    context.cancel(null);
                    if (outcome == null) {
                        reply.refuse(Status.CANCELLED);
                    } else {
                        reply.send(ReviewResponse.newBuilder().setOutcome(outcome).build());
                    }
                });
    }

    /** A header of the trace context; empty without one. */
    private static String sent(Metadata headers, Metadata.Key<String> name) {
        String found = headers.get(name);
        return found == null ? "" : found;
    }

    private ServerCall.Listener<Methods.Received<ReviewStreamRequest>> reviewStream(
            ServerCall<Methods.Received<ReviewStreamRequest>, ReviewStreamResponse> call,
            Metadata headers) {
        ReviewStream stream = new ReviewStream(this, call);
        stream.begin();
        return stream;
    }
}
