package dev.admissiongateway.worker;

import java.io.IOException;

/** The operator's fault: the address cannot be listened on. The message is one line. */
public final class AddressException extends IOException {
    private static final long serialVersionUID = 1;

    AddressException(String message) {
        super(message);
    }
}
