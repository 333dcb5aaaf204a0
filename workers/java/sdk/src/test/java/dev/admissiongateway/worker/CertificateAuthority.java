package dev.admissiongateway.worker;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.Signature;
import java.security.spec.ECGenParameterSpec;
import java.util.Arrays;
import java.util.Base64;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A CA and its certificates for one test: the X.509 (RFC 5280) that TLS needs, since the JDK cannot
 * create certificates.
 */
final class CertificateAuthority {
    private static final byte[] ECDSA_SHA256 = {
        0x30, 0x0A, 0x06, 0x08, 0x2A, (byte) 0x86, 0x48, (byte) 0xCE, 0x3D, 4, 3, 2
    };
    private static final byte[] COMMON_NAME = {0x06, 0x03, 0x55, 0x04, 0x03};
    private static final byte[] BASIC_CONSTRAINTS = {0x06, 0x03, 0x55, 0x1D, 0x13};
    private static final byte[] ALTERNATIVE_NAME = {0x06, 0x03, 0x55, 0x1D, 0x11};
    private static final byte[] YES = {0x01, 0x01, (byte) 0xFF};
    private static final byte[] LOOPBACK = {127, 0, 0, 1};
    private static final AtomicInteger SERIAL = new AtomicInteger(1);

    private final String name;
    private final KeyPair keys = keys();
    private final byte[] certificate;

    CertificateAuthority(String name) throws GeneralSecurityException {
        this.name = name;
        this.certificate = signed(name, keys);
    }

    /** The certificate of the CA, in PEM. */
    String pem() {
        return pem("CERTIFICATE", certificate);
    }

    /**
     * Creates a certificate for a name and 127.0.0.1, and writes {@code NAME.pem} and {@code
     * NAME.key}.
     */
    void certify(String subject, Path folder) throws GeneralSecurityException, IOException {
        KeyPair own = keys();
        Files.writeString(
                folder.resolve(subject + ".pem"), pem("CERTIFICATE", signed(subject, own)));
        Files.writeString(
                folder.resolve(subject + ".key"),
                pem("PRIVATE KEY", own.getPrivate().getEncoded()));
    }

    static String pem(String label, byte[] content) {
        String text = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(content);
        return "-----BEGIN " + label + "-----\n" + text + "\n-----END " + label + "-----\n";
    }

    static KeyPair keys() throws GeneralSecurityException {
        KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
        generator.initialize(new ECGenParameterSpec("secp256r1"));
        return generator.generateKeyPair();
    }

    private byte[] signed(String subject, KeyPair own) throws GeneralSecurityException {
        boolean authority = subject.equals(name);
        byte[] constraint =
                der(
                        0x30,
                        BASIC_CONSTRAINTS,
                        YES,
                        der(0x04, der(0x30, authority ? YES : new byte[0])));
        byte[] names = der(0x30, der(0x82, text("localhost")), der(0x87, LOOPBACK));
        byte[] alternatives = der(0x30, ALTERNATIVE_NAME, der(0x04, names));
        byte[] content =
                der(
                        0x30,
                        der(0xA0, der(0x02, new byte[] {2})), // version 3
                        der(0x02, new byte[] {(byte) SERIAL.incrementAndGet()}),
                        ECDSA_SHA256,
                        named(name),
                        der(
                                0x30,
                                der(0x17, text("200101000000Z")),
                                der(0x17, text("491231235959Z"))),
                        named(subject),
                        own.getPublic().getEncoded(),
                        der(0xA3, der(0x30, constraint, alternatives)));
        Signature signature = Signature.getInstance("SHA256withECDSA");
        signature.initSign(keys.getPrivate());
        signature.update(content);
        return der(0x30, content, ECDSA_SHA256, der(0x03, new byte[] {0}, signature.sign()));
    }

    private static byte[] named(String commonName) {
        return der(0x30, der(0x31, der(0x30, COMMON_NAME, der(0x0C, text(commonName)))));
    }

    private static byte[] text(String ascii) {
        return ascii.getBytes(StandardCharsets.US_ASCII);
    }

    static byte[] der(int tag, byte[]... parts) {
        int size = Arrays.stream(parts).mapToInt(part -> part.length).sum();
        ByteArrayOutputStream element = new ByteArrayOutputStream();
        element.write(tag);
        if (size >= 0x100) {
            element.write(0x82);
            element.write(size >> 8);
        } else if (size >= 0x80) {
            element.write(0x81);
        }
        element.write(size);
        Arrays.stream(parts).forEach(element::writeBytes);
        return element.toByteArray();
    }
}
