package dev.admissiongateway.worker;

/**
 * The document is not JSON, or a member of it does not have the type that it has in an
 * AdmissionRequest: an error of the gateway. The message has positions and types, never values.
 */
public final class InvalidDocumentException extends RuntimeException {
    private static final long serialVersionUID = 1;

    InvalidDocumentException(String message) {
        super(message);
    }

    InvalidDocumentException(String message, Throwable cause) {
        super(message, cause);
    }
}
