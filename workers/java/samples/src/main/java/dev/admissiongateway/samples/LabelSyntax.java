package dev.admissiongateway.samples;

import com.google.re2j.Pattern;

/**
 * The syntax of label keys and values in Kubernetes (k8s.io/apimachinery/pkg/util/validation).
 *
 * <p>A key is an optional prefix and a name: "name part must consist of alphanumeric characters,
 * '-', '_' or '.', and must start and end with an alphanumeric character" in at most 63 characters;
 * the prefix is a DNS-1123 subdomain of at most 253. A value is empty or a name.
 */
final class LabelSyntax {
    private static final Pattern NAME =
            Pattern.compile("[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?");
    private static final Pattern SUBDOMAIN =
            Pattern.compile("[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*");
    private static final int SUBDOMAIN_CHARACTERS = 253;

    private LabelSyntax() {}

    /**
     * Whether a text is a valid label key, such as {@code team} or {@code app.kubernetes.io/name}.
     */
    static boolean isKey(String key) {
        int slash = key.lastIndexOf('/');
        if (slash < 0) {
            return NAME.matches(key);
        }
        String prefix = key.substring(0, slash);
        return prefix.length() <= SUBDOMAIN_CHARACTERS
                && SUBDOMAIN.matches(prefix)
                && NAME.matches(key.substring(slash + 1));
    }

    /** Whether a text is a valid label value. */
    static boolean isValue(String value) {
        return value.isEmpty() || NAME.matches(value);
    }
}
