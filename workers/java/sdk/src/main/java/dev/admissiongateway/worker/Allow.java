package dev.admissiongateway.worker;

import java.util.List;
import java.util.Map;

/**
 * Admits the request, with or without a change. Created by {@link Answer#allow()}, {@link
 * Answer#patch}, {@link Answer#merge} and {@link Answer#mutated}.
 *
 * @param change of the object; null: none
 * @param warnings shown to the user by kubectl; each under 120 characters
 * @param auditAnnotations for the API server's audit log
 * @param cache limits the reuse of the verdict; null: as the operator configured
 */
public record Allow(
        Change change, List<String> warnings, Map<String, String> auditAnnotations, CacheHint cache)
        implements Answer {
    static final Allow UNCHANGED = new Allow(null, List.of(), Map.of(), null);

    /**
     * Validates the values.
     *
     * @throws InvalidAnswerException a warning is not text, or Kubernetes would reject an audit
     *     annotation
     */
    public Allow {
        warnings = Values.texts(warnings, "warnings");
        auditAnnotations = Values.auditAnnotations(auditAnnotations);
    }

    static Allow changed(Change change) {
        return new Allow(change, List.of(), Map.of(), null);
    }

    /** Appends warnings. */
    public Allow withWarnings(String... more) {
        return withWarnings(Values.list(more));
    }

    /** Appends warnings. */
    public Allow withWarnings(List<String> more) {
        return new Allow(change, Values.joined(warnings, more), auditAnnotations, cache);
    }

    /**
     * Adds an audit annotation.
     *
     * @param key 1 to 63 letters, digits, {@code -}, {@code _}, {@code .}
     * @param value the same for the same document
     */
    public Allow withAuditAnnotation(String key, String value) {
        return new Allow(change, warnings, Values.joined(auditAnnotations, key, value), cache);
    }

    /** Sets the cache hint. */
    public Allow withCache(CacheHint hint) {
        return new Allow(change, warnings, auditAnnotations, hint);
    }
}
