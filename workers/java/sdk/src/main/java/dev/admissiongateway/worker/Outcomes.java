package dev.admissiongateway.worker;

import admission.worker.v1.WorkerOuterClass;
import admission.worker.v1.WorkerOuterClass.FailureReason;
import admission.worker.v1.WorkerOuterClass.Outcome;

import com.google.protobuf.Duration;

/**
 * Encodes answers as the contract's Outcomes. An answer that is not allowed in its phase is a
 * failure.
 */
final class Outcomes {
    private Outcomes() {}

    /**
     * Validates the return value of a policy function.
     *
     * @param answer null is allow
     * @throws InvalidAnswerException it is not an answer, or is a change in the validating phase
     */
    static Answer accepted(Object answer, Policy.Phase phase) {
        if (answer == null) {
            return Answer.allow();
        }
        if (!(answer instanceof Answer accepted)) { // unchecked casts can bypass generics
            throw new InvalidAnswerException(
                    "returned " + Json.typeOf(answer) + ": must be an Answer or null");
        }
        if (phase == Policy.Phase.VALIDATING
                && accepted instanceof Allow allow
                && allow.change() != null) {
            throw new InvalidAnswerException(
                    "returned a change ("
                            + allow.change().kind()
                            + "): only a mutating policy may change the object");
        }
        return accepted;
    }

    /**
     * The answer as an Outcome.
     *
     * @param version of the policy, as in its description
     */
    static Outcome of(Answer answer, String version) {
        if (answer instanceof Deny deny) {
            Outcome.Builder made = Outcome.newBuilder().setVersion(version).setDeny(denial(deny));
            made.addAllWarnings(deny.warnings()).putAllAuditAnnotations(deny.auditAnnotations());
            return hinted(made, deny.cache());
        }
        if (answer instanceof Allow allow) {
            Outcome.Builder made =
                    Outcome.newBuilder().setVersion(version).setAllow(permission(allow.change()));
            made.addAllWarnings(allow.warnings()).putAllAuditAnnotations(allow.auditAnnotations());
            return hinted(made, allow.cache());
        }
        return failure(((Failure) answer).message(), version);
    }

    /** An Outcome without a verdict, with its reason in one sentence. */
    static Outcome failure(String message, String version) {
        return failure(message, FailureReason.FAILURE_REASON_UNSPECIFIED, version);
    }

    /**
     * An Outcome without a verdict, with its reason in one sentence and as a value for programs.
     */
    static Outcome failure(String message, FailureReason reason, String version) {
        return Outcome.newBuilder()
                .setFailure(
                        WorkerOuterClass.Failure.newBuilder().setMessage(message).setReason(reason))
                .setVersion(version)
                .build();
    }

    private static WorkerOuterClass.Allow permission(Change change) {
        WorkerOuterClass.Allow.Builder made = WorkerOuterClass.Allow.newBuilder();
        if (change == null || change.isEmpty()) {
            return made.build();
        }
        return switch (change.kind()) {
            case JSON_PATCH -> made.setJsonPatch(change.content()).build();
            case MERGE_PATCH -> made.setMergePatch(change.content()).build();
            case OBJECT -> made.setObject(change.content()).build();
        };
    }

    private static WorkerOuterClass.Deny denial(Deny answer) {
        WorkerOuterClass.StatusDetails.Builder about =
                WorkerOuterClass.StatusDetails.newBuilder()
                        .setName(answer.details().name())
                        .setGroup(answer.details().group())
                        .setKind(answer.details().kind())
                        .setUid(answer.details().uid())
                        .setRetryAfterSeconds(answer.details().retryAfterSeconds());
        for (Cause cause : answer.causes()) {
            about.addCausesBuilder()
                    .setReason(cause.reason())
                    .setMessage(cause.message())
                    .setField(cause.field());
        }
        WorkerOuterClass.Deny.Builder made =
                WorkerOuterClass.Deny.newBuilder()
                        .setCode(answer.code())
                        .setMessage(answer.message())
                        .setReason(answer.reason());
        WorkerOuterClass.StatusDetails details = about.build();
        return details.getSerializedSize() == 0 ? made.build() : made.setDetails(details).build();
    }

    private static Outcome hinted(Outcome.Builder made, CacheHint hint) {
        if (hint != null) {
            WorkerOuterClass.CacheHint.Builder cache = made.getCacheBuilder();
            if (hint.timeToLive() == null) {
                cache.setNoStore(WorkerOuterClass.CacheHint.NoStore.getDefaultInstance());
            } else {
                cache.setTtl(
                        Duration.newBuilder()
                                .setSeconds(hint.timeToLive().getSeconds())
                                .setNanos(hint.timeToLive().getNano()));
            }
        }
        return made.build();
    }
}
