package dev.admissiongateway.worker;

import admission.worker.v1.WorkerOuterClass.PolicyCall;
import admission.worker.v1.WorkerOuterClass.FailureReason;
import admission.worker.v1.WorkerOuterClass.Outcome;
import admission.worker.v1.WorkerOuterClass.Phase;

import com.google.protobuf.ByteString;

import io.grpc.Context;

import java.util.Locale;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.Executor;
import java.util.function.Consumer;

/**
 * One call to one outcome: the path that {@code Review} and {@code ReviewStream} share. Holds the
 * policies and all that is kept between calls; one for each served worker.
 *
 * <p>Whatever happens here is an outcome. An error is not a verdict: a policy that throws, returns
 * something absurd, cannot read its document or its settings has failed, and the operator's
 * failurePolicy decides. The exception's type goes to the gateway; its text and trace, which may
 * hold a Secret, stay in the worker's log.
 */
final class Judging {
    /**
     * What a message needs beside one outcome: an id of up to 10 bytes, and tags and lengths of up
     * to 6 bytes each.
     */
    private static final int ENVELOPE_BYTES = 64;

    private final String worker;
    private final String version;
    private final Map<String, Policy> policies;
    private final Limits limits;
    private final Executor plain;
    private final Executor blocking;
    private final Tracing tracing;
    private final KeptSettings settings;

    Judging(
            String worker,
            String version,
            Map<String, Policy> policies,
            Limits limits,
            Executor plain,
            Executor blocking,
            Tracing tracing) {
        this.worker = worker;
        this.version = version;
        this.policies = policies;
        this.limits = limits;
        this.plain = plain;
        this.blocking = blocking;
        this.tracing = tracing;
        this.settings = new KeptSettings(limits);
    }

    /** The policies by name. */
    Map<String, Policy> policies() {
        return policies;
    }

    /**
     * A call, as it came.
     *
     * @param call the question; its document and its timeout are the caller's affair
     * @param document the document's JSON text; null: the call has none
     * @param traceparent of the caller's span; empty: not traced
     */
    record Question(PolicyCall call, ByteString document, String traceparent) {}

    /**
     * Takes a call.
     *
     * @param context is cancelled when nobody waits for the outcome any more, which stops the work
     * @param ended is called once, when the work has ended, in whatever thread: with the outcome,
     *     or with null if the work was cancelled before it had one. Nothing is thrown
     */
    void begin(Question question, Context.CancellableContext context, Consumer<Outcome> ended) {
        Policy policy = policies.get(question.call().getPolicy());
        Outcome refusal = refusal(policy, question);
        if (refusal != null) {
            ended.accept(refusal);
            return;
        }
        Executor threads = policy.style() == Policy.Style.BLOCKING ? blocking : plain;
        new Work(this, policy, question, context, ended).begin(threads);
    }

    /** Runs what is neither a call's nor a policy's, such as a check of settings. */
    void besideCalls(Runnable work) {
        blocking.execute(work);
    }

    Tracing tracing() {
        return tracing;
    }

    /** What a call's settings say; converted once. */
    Object settingsOf(Policy policy, PolicyCall call) throws InvalidSettingsException {
        return settings.read(policy.name(), policy.settings(), call.getSettings());
    }

    /** The version that a policy's outcomes carry: its own, else the worker's. */
    String versionOf(Policy policy) {
        return policy.version().isEmpty() ? version : policy.version();
    }

    /** The outcome, unless no message could carry it. */
    Outcome fitting(Outcome outcome, Policy policy, String uid) {
        int size = outcome.getSerializedSize();
        int limit = Math.max(0, limits.messageBytes() - ENVELOPE_BYTES);
        if (size <= limit) {
            return outcome;
        }
        String message =
                "policy "
                        + policy.name()
                        + ": the answer has "
                        + size
                        + " bytes, at most "
                        + limit
                        + " fit a message: answer with a patch";
        Log.failure(message, policy.name(), uid, null);
        return Outcomes.failure(message, versionOf(policy));
    }

    private Outcome refusal(Policy policy, Question question) {
        PolicyCall call = question.call();
        if (policy == null) {
            String held =
                    policies.isEmpty()
                            ? "none"
                            : String.join(", ", new TreeSet<>(policies.keySet()));
            return Outcomes.failure(
                    "worker "
                            + worker
                            + " holds no policy "
                            + Json.quoted(call.getPolicy())
                            + "; it holds: "
                            + held,
                    FailureReason.FAILURE_REASON_UNKNOWN_POLICY,
                    version);
        }
        if (call.getPhase() != Describing.phaseOf(policy)) {
            return Outcomes.failure(
                    "policy "
                            + policy.name()
                            + " is for "
                            + nameOf(Describing.phaseOf(policy))
                            + " and was called in "
                            + nameOf(call.getPhase()),
                    FailureReason.FAILURE_REASON_UNKNOWN_POLICY,
                    versionOf(policy));
        }
        if (question.document() == null) {
            return Outcomes.failure(
                    "policy " + policy.name() + " was called without a document", versionOf(policy));
        }
        return null;
    }

    private static String nameOf(Phase phase) {
        return switch (phase) {
            case PHASE_MUTATING, PHASE_VALIDATING ->
                    "the "
                            + phase.name().substring("PHASE_".length()).toLowerCase(Locale.ROOT)
                            + " phase";
            default -> "no phase";
        };
    }
}
