package dev.admissiongateway.worker;

/**
 * The resource of a denial (a metav1.StatusDetails without its causes), and after how many seconds
 * to retry.
 *
 * @param name of the resource
 * @param group its API group
 * @param kind its kind
 * @param uid its uid
 * @param retryAfterSeconds 0: unset
 */
public record Details(String name, String group, String kind, String uid, int retryAfterSeconds) {
    /** No details. */
    public static final Details NONE = new Details("", "", "", "", 0);

    /**
     * Validates the texts.
     *
     * @throws InvalidAnswerException a text is null or invalid Unicode; {@code ""} is unset
     */
    public Details {
        Values.text(name, "details.name");
        Values.text(group, "details.group");
        Values.text(kind, "details.kind");
        Values.text(uid, "details.uid");
    }
}
