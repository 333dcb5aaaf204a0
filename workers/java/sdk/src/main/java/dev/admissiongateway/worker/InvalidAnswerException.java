package dev.admissiongateway.worker;

/**
 * The policy author's fault: an answer that cannot mean anything, such as a warning that is no
 * text. The message is safe to show: it holds names and types, never values.
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
