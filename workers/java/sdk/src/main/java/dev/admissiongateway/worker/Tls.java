package dev.admissiongateway.worker;

import java.nio.file.Path;

/**
 * Where the PEM files for TLS are. They are read again when they change; what cannot be used is
 * logged, and what was used stays.
 *
 * @param certificate the worker's certificate, with the chain behind it
 * @param key its private key, not encrypted (PKCS#8, PKCS#1 or SEC 1)
 * @param clientCa the authorities whose certificates clients must have; null: any client is served
 */
public record Tls(Path certificate, Path key, Path clientCa) {
    /**
     * Checks what is needed.
     *
     * @throws IllegalArgumentException certificate or key is missing
     */
    public Tls {
        if (certificate == null || key == null) {
            throw new IllegalArgumentException("TLS needs both a certificate and a key");
        }
    }

    /** TLS for any client. */
    public Tls(Path certificate, Path key) {
        this(certificate, key, null);
    }
}
