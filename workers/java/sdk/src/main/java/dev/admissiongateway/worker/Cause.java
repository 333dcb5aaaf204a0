package dev.admissiongateway.worker;

/**
 * One error (a metav1.StatusCause).
 *
 * @param field in Kubernetes' notation, such as {@code spec.containers[0].image}
 * @param message for people
 * @param reason a metav1.CauseType such as {@code FieldValueRequired}
 */
public record Cause(String field, String message, String reason) {
    /**
     * Validates the texts.
     *
     * @throws InvalidAnswerException a text is null or invalid Unicode
     */
    public Cause {
        Values.text(field, "a cause's field");
        Values.text(message, "a cause's message");
        Values.text(reason, "a cause's reason");
    }

    /** A cause with the reason {@code FieldValueInvalid}. */
    public Cause(String field, String message) {
        this(field, message, "FieldValueInvalid");
    }
}
