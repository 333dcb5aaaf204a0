package dev.admissiongateway.worker;

/**
 * The policy has no verdict. Created by {@link Answer#fail}.
 *
 * @param message for the operator: what failed, in one sentence
 */
public record Failure(String message) implements Answer {
    /**
     * Validates the message.
     *
     * @throws InvalidAnswerException the message is null or invalid Unicode
     */
    public Failure {
        Values.text(message, "fail's message");
    }
}
