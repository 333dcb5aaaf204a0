package dev.admissiongateway.worker;

import java.io.IOException;

/** The address is invalid, or the worker cannot listen on it. The message is one line. */
public final class AddressException extends IOException {
    private static final long serialVersionUID = 1;

    AddressException(String message) {
        super(message);
    }
}
