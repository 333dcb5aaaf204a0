package dev.admissiongateway.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import admission.worker.v1.WorkerOuterClass.DescribeRequest;

import io.grpc.ManagedChannel;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.shaded.io.grpc.netty.GrpcSslContexts;
import io.grpc.netty.shaded.io.netty.handler.ssl.SslContext;
import io.grpc.netty.shaded.io.netty.handler.ssl.SslContextBuilder;
import io.grpc.netty.shaded.io.netty.handler.ssl.SslProvider;
import io.grpc.stub.ClientCalls;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.nio.file.CopyOption;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.interfaces.ECPrivateKey;
import java.time.Instant;
import java.util.Arrays;

/** TLS and mTLS, and changes of certificates. */
class TlsTest {
    private static final Worker WORKER = new Worker("w", "1");

    @TempDir Path folder;
    private CertificateAuthority authority;

    @BeforeEach
    void certify() throws Exception {
        authority = new CertificateAuthority("authority");
        authority.certify("worker", folder);
        authority.certify("gateway", folder);
        Files.writeString(folder.resolve("authority.pem"), authority.pem());
    }

    private Tls tls(boolean mutual) {
        Path clientCa = mutual ? folder.resolve("authority.pem") : null;
        return new Tls(folder.resolve("worker.pem"), folder.resolve("worker.key"), clientCa);
    }

    private RunningWorker serve(boolean mutual) throws Exception {
        return WORKER.serve("127.0.0.1:0", Limits.defaults(), tls(mutual));
    }

    private SslContextBuilder trusting(CertificateAuthority trusted) throws Exception {
        Path file = Files.writeString(folder.resolve("trusted.pem"), trusted.pem());
        return GrpcSslContexts.configure(
                SslContextBuilder.forClient().trustManager(file.toFile()), SslProvider.JDK);
    }

    /** The name of the worker, over a new connection. */
    private static String describe(String address, SslContext secured) throws Exception {
        ManagedChannel channel =
                ServedWorker.channel(address, builder -> builder.sslContext(secured));
        try {
            return ClientCalls.blockingUnaryCall(
                            channel,
                            ServedWorker.DESCRIBE,
                            ServedWorker.withDeadline(),
                            DescribeRequest.getDefaultInstance())
                    .getWorker();
        } finally {
            channel.shutdownNow();
        }
    }

    private static void assertRefused(String address, SslContext secured) {
        StatusRuntimeException error =
                assertThrows(StatusRuntimeException.class, () -> describe(address, secured));
        assertEquals(Status.Code.UNAVAILABLE, error.getStatus().getCode());
    }

    @Test
    @DisplayName(
            "A client that trusts the CA is served; one without TLS or with another CA is"
                    + " not.")
    void tls() throws Exception {
        try (RunningWorker running = serve(false)) {
            assertEquals("w", describe(running.address(), trusting(authority).build()));
            assertRefused(running.address(), trusting(new CertificateAuthority("other")).build());
            try (ServedWorker plain = ServedWorker.to(running.address())) {
                assertThrows(StatusRuntimeException.class, plain::describe);
            }
        }
    }

    @Test
    @DisplayName("TLS is 1.2 or newer.")
    void versions() throws Exception {
        try (RunningWorker running = serve(false)) {
            assertEquals(
                    "w",
                    describe(running.address(), trusting(authority).protocols("TLSv1.2").build()));
            assertEquals(
                    "w",
                    describe(running.address(), trusting(authority).protocols("TLSv1.3").build()));
        }
    }

    @Test
    @DisplayName("With client CAs, only clients with a certificate of these are served.")
    void mutual() throws Exception {
        CertificateAuthority other = new CertificateAuthority("other");
        other.certify("stranger", folder);
        try (RunningWorker running = serve(true)) {
            assertEquals("w", describe(running.address(), as("gateway")));
            assertRefused(running.address(), trusting(authority).build());
            assertRefused(running.address(), as("stranger"));
        }
    }

    private SslContext as(String name) throws Exception {
        return trusting(authority)
                .keyManager(
                        folder.resolve(name + ".pem").toFile(),
                        folder.resolve(name + ".key").toFile())
                .build();
    }

    @Test
    @DisplayName("Changed files are reloaded; if they cannot be used, the previous ones stay.")
    void reload() throws Exception {
        CertificateAuthority next = new CertificateAuthority("next");
        try (RunningWorker running = serve(true)) {
            assertEquals("w", describe(running.address(), as("gateway")));
            Files.writeString(folder.resolve("worker.key"), "nonsense");
            next.certify("other", folder);
            Files.copy(folder.resolve("other.pem"), folder.resolve("worker.pem"), REPLACE);
            assertEquals(
                    "w",
                    describe(running.address(), as("gateway"))); // half of a renewal has no effect
            Files.copy(folder.resolve("other.key"), folder.resolve("worker.key"), REPLACE);
            SslContext renewed =
                    trusting(next)
                            .keyManager(
                                    folder.resolve("gateway.pem").toFile(),
                                    folder.resolve("gateway.key").toFile())
                            .build();
            untilServed(running.address(), renewed);
            assertRefused(running.address(), as("gateway")); // which trusts the old authority
            Files.writeString(folder.resolve("authority.pem"), next.pem());
            untilRefused(running.address(), renewed);
        }
    }

    private static final CopyOption REPLACE = StandardCopyOption.REPLACE_EXISTING;

    private static boolean isServed(String address, SslContext secured) throws Exception {
        try {
            return describe(address, secured).equals("w");
        } catch (StatusRuntimeException refused) {
            return false;
        }
    }

    private static void untilServed(String address, SslContext secured) throws Exception {
        Instant end = Instant.now().plusSeconds(ServedWorker.TIMEOUT_SECONDS);
        while (!isServed(address, secured)) {
            assertTrue(Instant.now().isBefore(end), "the new certificate is not used");
        }
    }

    private static void untilRefused(String address, SslContext secured) throws Exception {
        Instant end = Instant.now().plusSeconds(ServedWorker.TIMEOUT_SECONDS);
        while (isServed(address, secured)) {
            assertTrue(Instant.now().isBefore(end), "the old authority is still trusted");
        }
    }

    private String refused() {
        AddressException error =
                assertThrows(
                        AddressException.class,
                        () -> WORKER.serve("127.0.0.1:0", Limits.defaults(), tls(true)));
        return error.getMessage();
    }

    @Test
    @DisplayName("Unusable files at the start are an error that names the flag.")
    void unusable() throws Exception {
        Files.copy(folder.resolve("gateway.key"), folder.resolve("worker.key"), REPLACE);
        assertTrue(refused().contains("is not the key of the certificate"));
        Files.writeString(folder.resolve("worker.key"), "nonsense");
        assertTrue(refused().contains("--tls-key: there is no private key"));
        Files.writeString(folder.resolve("authority.pem"), "");
        Files.writeString(folder.resolve("worker.pem"), "");
        assertTrue(refused().contains("--tls-cert"));
        Files.delete(folder.resolve("worker.pem"));
        assertTrue(refused().contains("there is no such file"));
    }

    @Test
    @DisplayName("Keys are read from PKCS#8, PKCS#1 and SEC 1.")
    void keys() throws Exception {
        KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA");
        generator.initialize(2048);
        KeyPair rsa = generator.generateKeyPair();
        byte[] pkcs8 = rsa.getPrivate().getEncoded();
        // Before the PKCS#1 are SEQUENCE, version, algorithm, OCTET STRING with a length of two
        // bytes.
        byte[] pkcs1 = Arrays.copyOfRange(pkcs8, 26, pkcs8.length);
        assertEquals(
                rsa.getPrivate(), PrivateKeys.read(CertificateAuthority.pem("PRIVATE KEY", pkcs8)));
        assertEquals(
                rsa.getPrivate(),
                PrivateKeys.read(CertificateAuthority.pem("RSA PRIVATE KEY", pkcs1)));
        ECPrivateKey ec = (ECPrivateKey) CertificateAuthority.keys().getPrivate();
        byte[] scalar = new byte[32];
        byte[] written = ec.getS().toByteArray();
        int size = Math.min(32, written.length);
        System.arraycopy(written, written.length - size, scalar, 32 - size, size);
        byte[] p256 = {0x06, 0x08, 0x2A, (byte) 0x86, 0x48, (byte) 0xCE, 0x3D, 0x03, 0x01, 0x07};
        byte[] sec1 =
                CertificateAuthority.der(
                        0x30,
                        CertificateAuthority.der(0x02, new byte[] {1}),
                        CertificateAuthority.der(0x04, scalar),
                        CertificateAuthority.der(0xA0, p256));
        ECPrivateKey read =
                (ECPrivateKey) PrivateKeys.read(CertificateAuthority.pem("EC PRIVATE KEY", sec1));
        assertEquals(ec.getS(), read.getS());
        assertEquals(ec.getParams(), read.getParams());
    }
}
