package dev.admissiongateway.worker;

import java.nio.file.Path;

/**
 * The PEM files for TLS. The worker reloads them when they change, logs files that it cannot use,
 * and keeps the previous ones.
 *
 * @param certificate the worker's certificate, followed by its chain
 * @param key its private key, not encrypted (PKCS#8, PKCS#1 or SEC 1)
 * @param clientCa the CAs of client certificates; null: all clients are served
 */
public record Tls(Path certificate, Path key, Path clientCa) {
    /**
     * Validates the files.
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
