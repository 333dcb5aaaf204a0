package dev.admissiongateway.worker;

import java.util.List;
import java.util.Map;

/**
 * The request may pass, perhaps changed. Made by {@link Answer#allow()}, {@link Answer#patch},
 * {@link Answer#merge} and {@link Answer#mutated}.
 *
 * @param change what to change; null: nothing
 * @param warnings shown to the user by kubectl; each under 120 characters
 * @param auditAnnotations for the API server's audit log
 * @param cache how long the verdict may be reused; null: as the operator configured
 */
public record Allow(
        Change change, List<String> warnings, Map<String, String> auditAnnotations, CacheHint cache)
        implements Answer {
    static final Allow UNCHANGED = new Allow(null, List.of(), Map.of(), null);

    /**
     * Checks what allow and deny have in common.
     *
     * @throws InvalidAnswerException a warning that is no text, or an audit annotation that
     *     Kubernetes would refuse
     */
    public Allow {
        warnings = Values.texts(warnings, "warnings");
        auditAnnotations = Values.auditAnnotations(auditAnnotations);
    }

    static Allow changed(Change change) {
        return new Allow(change, List.of(), Map.of(), null);
    }

    /** The same with these warnings behind those that are there. */
    public Allow withWarnings(String... more) {
        return withWarnings(Values.list(more));
    }

    /** The same with these warnings behind those that are there. */
    public Allow withWarnings(List<String> more) {
        return new Allow(change, Values.joined(warnings, more), auditAnnotations, cache);
    }

    /**
     * The same with an audit annotation.
     *
     * @param key 1 to 63 letters, digits, {@code -}, {@code _}, {@code .}
     * @param value the same whenever the same document is called again
     */
    public Allow withAuditAnnotation(String key, String value) {
        return new Allow(change, warnings, Values.joined(auditAnnotations, key, value), cache);
    }

    /** The same with a cache hint. */
    public Allow withCache(CacheHint hint) {
        return new Allow(change, warnings, auditAnnotations, hint);
    }
}
