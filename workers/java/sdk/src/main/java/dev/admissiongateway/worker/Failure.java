package dev.admissiongateway.worker;

/**
 * The policy could not judge. Made by {@link Answer#fail}.
 *
 * @param message for the operator, what went wrong in one sentence
 */
public record Failure(String message) implements Answer {
    /**
     * Checks the message.
     *
     * @throws InvalidAnswerException it is null or no Unicode text
     */
    public Failure {
        Values.text(message, "fail's message");
    }
}
