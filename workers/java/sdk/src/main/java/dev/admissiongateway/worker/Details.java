package dev.admissiongateway.worker;

/**
 * What a denial is about (a metav1.StatusDetails without its causes), and after how many seconds to
 * try again.
 *
 * @param name of the resource
 * @param group its API group
 * @param kind its kind
 * @param uid its uid
 * @param retryAfterSeconds 0: not said
 */
public record Details(String name, String group, String kind, String uid, int retryAfterSeconds) {
    /** Nothing is said. */
    public static final Details NONE = new Details("", "", "", "", 0);

    /**
     * Checks the texts.
     *
     * @throws InvalidAnswerException one of them is null or no Unicode text; {@code ""} is "not
     *     said"
     */
    public Details {
        Values.text(name, "details.name");
        Values.text(group, "details.group");
        Values.text(kind, "details.kind");
        Values.text(uid, "details.uid");
    }
}
