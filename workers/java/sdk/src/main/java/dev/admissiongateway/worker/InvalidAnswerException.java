package dev.admissiongateway.worker;

/**
 * An invalid answer of a policy, such as a warning that is not text: an error of the author. The
 * message has names and types, never values.
 */
public final class InvalidAnswerException extends RuntimeException {
    private static final long serialVersionUID = 1;

    InvalidAnswerException(String message) {
        super(message);
    }

    InvalidAnswerException(String message, Throwable cause) {
        super(message, cause);
    }
}
