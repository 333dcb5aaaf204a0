package dev.admissiongateway.worker;

import admission.worker.v1.WorkerOuterClass.FailureReason;
import admission.worker.v1.WorkerOuterClass.Outcome;
import admission.worker.v1.WorkerOuterClass.Phase;
import admission.worker.v1.WorkerOuterClass.PolicyCall;

import com.google.protobuf.ByteString;

import io.grpc.Context;

import java.util.Locale;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.Executor;
import java.util.function.Consumer;

/**
 * Calls the policies of one served worker, and caches their settings. {@code Review} and {@code
 * ReviewStream} share it.
 *
 * <p>Every call ends with an outcome. An error is not a verdict: if a policy throws, returns an
 * invalid answer, or gets an invalid document or settings, the outcome is a failure, and the
 * operator's failurePolicy decides. The failure has the type of the exception. Its text and trace
 * may hold a Secret, and stay in the worker's log.
 */
final class PolicyCaller {
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
    private final SettingsCache settings;

    PolicyCaller(
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
        this.settings = new SettingsCache(limits);
    }

    /** The policies by name. */
    Map<String, Policy> policies() {
        return policies;
    }

    /**
     * A policy call as received.
     *
     * @param call whose document and timeout the receiver has handled
     * @param document JSON text; null: the call has none
     */
    record ReceivedCall(PolicyCall call, ByteString document) {}

    /**
     * Starts a call.
     *
     * @param context is cancelled when the gateway no longer waits, which stops the policy
     * @param ended is called once, in any thread, when the call has ended: with the outcome, or
     *     with null if the call was cancelled before it had one
     */
    void begin(ReceivedCall received, Context.CancellableContext context, Consumer<Outcome> ended) {
        Policy policy = policies.get(received.call().getPolicy());
        Outcome refusal = refusal(policy, received);
        if (refusal != null) {
            ended.accept(refusal);
            return;
        }
        Executor threads = policy.style() == Policy.Style.BLOCKING ? blocking : plain;
        new PolicyTask(this, policy, received, context, ended).begin(threads);
    }

    /** Runs work that is not a policy call, such as a check of settings. */
    void besideCalls(Runnable work) {
        blocking.execute(work);
    }

    Tracing tracing() {
        return tracing;
    }

    /** The settings of a call, converted once. */
    Object settingsOf(Policy policy, PolicyCall call) throws InvalidSettingsException {
        return settings.read(policy.name(), policy.settings(), call.getSettings());
    }

    /** The version in a policy's outcomes: its own, else the worker's. */
    String versionOf(Policy policy) {
        return policy.version().isEmpty() ? version : policy.version();
    }

    /** The outcome, or a failure if it is larger than a message. */
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

    private Outcome refusal(Policy policy, ReceivedCall received) {
        PolicyCall call = received.call();
        if (policy == null) {
            String known =
                    policies.isEmpty()
                            ? "none"
                            : String.join(", ", new TreeSet<>(policies.keySet()));
            return Outcomes.failure(
                    "worker "
                            + worker
                            + " holds no policy "
                            + Json.quoted(call.getPolicy())
                            + "; it holds: "
                            + known,
                    FailureReason.FAILURE_REASON_UNKNOWN_POLICY,
                    version);
        }
        if (call.getPhase() != Descriptions.phaseOf(policy)) {
            return Outcomes.failure(
                    "policy "
                            + policy.name()
                            + " is for "
                            + nameOf(Descriptions.phaseOf(policy))
                            + " and was called in "
                            + nameOf(call.getPhase()),
                    FailureReason.FAILURE_REASON_UNKNOWN_POLICY,
                    versionOf(policy));
        }
        if (received.document() == null) {
            return Outcomes.failure(
                    "policy " + policy.name() + " was called without a document",
                    versionOf(policy));
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
