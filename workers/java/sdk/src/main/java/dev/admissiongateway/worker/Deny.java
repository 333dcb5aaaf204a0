package dev.admissiongateway.worker;

import java.util.List;
import java.util.Map;

/**
 * Rejects the request. Created by {@link Answer#deny}.
 *
 * @param message for the user
 * @param code an HTTP status, 400 to 599; for others the gateway sends 400, as kube-apiserver does
 * @param reason a metav1.StatusReason; null: the one that Kubernetes pairs with {@code code}, if
 *     any
 * @param causes the single errors, for programs
 * @param details which resource it is about, and when to try again
 * @param warnings shown to the user by kubectl; each under 120 characters
 * @param auditAnnotations for the API server's audit log
 * @param cache limits the reuse of the verdict; null: as the operator configured
 */
public record Deny(
        String message,
        int code,
        String reason,
        List<Cause> causes,
        Details details,
        List<String> warnings,
        Map<String, String> auditAnnotations,
        CacheHint cache)
        implements Answer {
    /** Kubernetes' code for a denial without one. */
    private static final int FORBIDDEN = 403;

    /**
     * Kubernetes' metav1.StatusReason of each code (k8s.io/apimachinery/pkg/apis/meta/v1/types.go).
     */
    private static final Map<Integer, String> REASONS =
            Map.ofEntries(
                    Map.entry(400, "BadRequest"),
                    Map.entry(401, "Unauthorized"),
                    Map.entry(403, "Forbidden"),
                    Map.entry(404, "NotFound"),
                    Map.entry(405, "MethodNotAllowed"),
                    Map.entry(406, "NotAcceptable"),
                    Map.entry(409, "Conflict"),
                    Map.entry(410, "Gone"),
                    Map.entry(413, "RequestEntityTooLarge"),
                    Map.entry(415, "UnsupportedMediaType"),
                    Map.entry(422, "Invalid"),
                    Map.entry(429, "TooManyRequests"),
                    Map.entry(500, "InternalError"),
                    Map.entry(503, "ServiceUnavailable"),
                    Map.entry(504, "Timeout"));

    /**
     * Validates the values, and fills in the reason.
     *
     * @throws InvalidAnswerException a value is missing or not text
     */
    public Deny {
        Values.text(message, "deny's message");
        reason = reason == null ? reasonOf(code) : Values.text(reason, "deny's reason");
        causes = Values.list(causes, "deny's causes");
        details = details == null ? Details.NONE : details;
        warnings = Values.texts(warnings, "warnings");
        auditAnnotations = Values.auditAnnotations(auditAnnotations);
    }

    static Deny forbidden(String message) {
        return new Deny(message, FORBIDDEN, null, List.of(), null, List.of(), Map.of(), null);
    }

    private static String reasonOf(int code) {
        return REASONS.getOrDefault(code, "");
    }

    /** Sets the HTTP status; the reason follows, unless one is set. */
    public Deny withCode(int other) {
        String given = reason.equals(reasonOf(code)) ? null : reason;
        return new Deny(message, other, given, causes, details, warnings, auditAnnotations, cache);
    }

    /** Sets the metav1.StatusReason. */
    public Deny withReason(String other) {
        Values.text(other, "deny's reason");
        return new Deny(message, code, other, causes, details, warnings, auditAnnotations, cache);
    }

    /** Appends causes. */
    public Deny withCauses(Cause... more) {
        return withCauses(Values.list(more));
    }

    /** Appends causes. */
    public Deny withCauses(List<Cause> more) {
        List<Cause> all = Values.joined(causes, more);
        return new Deny(message, code, reason, all, details, warnings, auditAnnotations, cache);
    }

    /** Sets the details. */
    public Deny withDetails(Details about) {
        return new Deny(message, code, reason, causes, about, warnings, auditAnnotations, cache);
    }

    /** Appends warnings. */
    public Deny withWarnings(String... more) {
        return withWarnings(Values.list(more));
    }

    /** Appends warnings. */
    public Deny withWarnings(List<String> more) {
        List<String> all = Values.joined(warnings, more);
        return new Deny(message, code, reason, causes, details, all, auditAnnotations, cache);
    }

    /** Adds an audit annotation; key and value as for {@link Allow#withAuditAnnotation}. */
    public Deny withAuditAnnotation(String key, String value) {
        Map<String, String> all = Values.joined(auditAnnotations, key, value);
        return new Deny(message, code, reason, causes, details, warnings, all, cache);
    }

    /** Sets the cache hint. */
    public Deny withCache(CacheHint hint) {
        return new Deny(message, code, reason, causes, details, warnings, auditAnnotations, hint);
    }
}
