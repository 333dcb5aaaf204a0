package dev.admissiongateway.worker;

/**
 * The gateway's fault: the document is not JSON, or a member of it is not what an AdmissionRequest
 * holds there. The message is safe to show: it holds positions and types, never values.
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
