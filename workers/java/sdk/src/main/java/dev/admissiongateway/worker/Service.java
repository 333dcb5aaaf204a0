package dev.admissiongateway.worker;

import admission.worker.v1.WorkerOuterClass.PolicyCall;
import admission.worker.v1.WorkerOuterClass.DescribeRequest;
import admission.worker.v1.WorkerOuterClass.DescribeResponse;
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
 * The contract's four calls, for one worker.
 *
 * <p>A message that cannot be read is INVALID_ARGUMENT, too many calls are RESOURCE_EXHAUSTED;
 * everything else is an answer. A gRPC status is a failure of the call and never a verdict.
 *
 * @param description what Describe answers
 * @param judging answers calls
 * @param limits of calls in flight and of batches
 * @param inFlight places for calls, shared by all calls
 * @param stopping that the worker is told to stop
 * @param traffic is told of every call
 * @param executor where streams are written
 * @param clock where timeouts are waited for
 */
record Service(
        DescribeResponse description,
        Judging judging,
        Limits limits,
        InFlight inFlight,
        Stopping stopping,
        Traffic traffic,
        Executor executor,
        ScheduledExecutorService clock) {
    private static final Metadata.Key<String> TRACEPARENT =
            Metadata.Key.of("traceparent", Metadata.ASCII_STRING_MARSHALLER);

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

    /** A check is the author's, and may take long: calls are read and written meanwhile. */
    private void validateSettings(
            ValidateSettingsRequest request,
            Metadata headers,
            UnaryCalls.Reply<ValidateSettingsResponse> reply) {
        judging.besideCalls(
                () -> {
                    try {
                        reply.send(Describing.findings(judging.policies(), request));
                    } catch (Throwable error) { // nobody else would end the call
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
     * Exactly one call. gRPC cancels the context when the deadline is over or nobody waits any more.
     */
    private void review(
            ReviewRequest request, Metadata headers, UnaryCalls.Reply<ReviewResponse> reply) {
        if (!inFlight.enter()) {
            reply.refuse(Status.RESOURCE_EXHAUSTED.withDescription(inFlight.refusal()));
            return;
        }
        PolicyCall policyCall = request.getCall();
        // "document_index and timeout are not used here."
        ByteString document = policyCall.hasDocument() ? policyCall.getDocument() : null;
        String traceparent = headers.containsKey(TRACEPARENT) ? headers.get(TRACEPARENT) : "";
        Context.CancellableContext context = Context.current().withCancellation();
        judging.begin(
                new Judging.Question(policyCall, document, traceparent),
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

    private ServerCall.Listener<Methods.Received<ReviewStreamRequest>> reviewStream(
            ServerCall<Methods.Received<ReviewStreamRequest>, ReviewStreamResponse> call,
            Metadata headers) {
        Conversation conversation = new Conversation(this, call);
        conversation.begin();
        return conversation;
    }
}
