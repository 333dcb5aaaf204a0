package dev.admissiongateway.worker;

import io.grpc.netty.shaded.io.grpc.netty.GrpcSslContexts;
import io.grpc.netty.shaded.io.netty.handler.ssl.ClientAuth;
import io.grpc.netty.shaded.io.netty.handler.ssl.SslContext;
import io.grpc.netty.shaded.io.netty.handler.ssl.SslContextBuilder;
import io.grpc.netty.shaded.io.netty.handler.ssl.SslProvider;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Signature;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.Collection;

/**
 * The contents of the files of a {@link Tls} at one time. The bytes are compared, not the
 * modification times.
 *
 * @param certificate PEM
 * @param key PEM
 * @param clientCa PEM; empty: any client is served
 */
record Certificates(String certificate, String key, String clientCa) {
    private static final String[] PROTOCOLS = {"TLSv1.3", "TLSv1.2"};

    /** A file cannot be read or used. The message is one line. */
    static final class UnusableException extends Exception {
        private static final long serialVersionUID = 1;

        UnusableException(String message) {
            super(message);
        }
    }

    static Certificates read(Tls files) throws UnusableException {
        String authorities = files.clientCa() == null ? "" : read(files.clientCa(), "--client-ca");
        return new Certificates(
                read(files.certificate(), "--tls-cert"),
                read(files.key(), "--tls-key"),
                authorities);
    }

    private static String read(Path file, String flag) throws UnusableException {
        try {
            return Files.readString(
                    file, StandardCharsets.ISO_8859_1); // PEM is ASCII; text around it may not be
        } catch (NoSuchFileException missing) {
            throw new UnusableException(flag + " " + file + ": there is no such file");
        } catch (IOException error) {
            throw new UnusableException(
                    flag + " " + file + ": cannot be read: " + error.getClass().getSimpleName());
        }
    }

    /**
     * The TLS context of the server. It is the JDK's TLS, which needs no native library and is fast
     * enough for policy calls.
     */
    SslContext context() throws UnusableException {
        X509Certificate[] chain = certificates(certificate, "--tls-cert");
        PrivateKey secret = secret();
        check(chain[0].getPublicKey(), secret);
        try {
            SslContextBuilder builder = SslContextBuilder.forServer(secret, chain);
            if (!clientCa.isEmpty()) {
                builder.trustManager(certificates(clientCa, "--client-ca"))
                        .clientAuth(ClientAuth.REQUIRE);
            }
            return GrpcSslContexts.configure(builder, SslProvider.JDK).protocols(PROTOCOLS).build();
        } catch (IOException | IllegalArgumentException error) {
            throw new UnusableException("TLS cannot be set up: " + error.getMessage());
        }
    }

    private PrivateKey secret() throws UnusableException {
        try {
            return PrivateKeys.read(key);
        } catch (GeneralSecurityException error) {
            throw new UnusableException("--tls-key: " + error.getMessage());
        }
    }

    private static X509Certificate[] certificates(String pem, String flag)
            throws UnusableException {
        try {
            Collection<? extends Certificate> found =
                    CertificateFactory.getInstance("X.509")
                            .generateCertificates(
                                    new ByteArrayInputStream(
                                            pem.getBytes(StandardCharsets.ISO_8859_1)));
            if (found.isEmpty()) {
                throw new UnusableException(flag + ": there is no certificate in PEM");
            }
            return found.toArray(X509Certificate[]::new);
        } catch (GeneralSecurityException error) {
            throw new UnusableException(flag + ": holds no certificates in PEM that can be read");
        }
    }

    /**
     * Checks that key and certificate belong together. Otherwise the error would occur only in a
     * handshake, for example during a renewal.
     */
    private static void check(PublicKey known, PrivateKey secret) throws UnusableException {
        String algorithm =
                switch (known.getAlgorithm()) {
                    case "RSA" -> "SHA256withRSA";
                    case "EC" -> "SHA256withECDSA";
                    default -> known.getAlgorithm();
                };
        try {
            Signature signing = Signature.getInstance(algorithm);
            signing.initSign(secret);
            signing.update((byte) 0);
            Signature checking = Signature.getInstance(algorithm);
            checking.initVerify(known);
            checking.update((byte) 0);
            if (checking.verify(signing.sign())) {
                return;
            }
        } catch (GeneralSecurityException otherKind) {
            // as below
        }
        throw new UnusableException("--tls-key: is not the key of the certificate in --tls-cert");
    }
}
