package dev.admissiongateway.worker;

import java.io.ByteArrayOutputStream;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Reads private keys from PEM. The JDK reads PKCS#8 only; cert-manager writes PKCS#1 by default,
 * and openssl's {@code ecparam -genkey} SEC 1. Both are the inner part of a PKCS#8, and are wrapped
 * into one:
 *
 * <pre>
 * PrivateKeyInfo ::= SEQUENCE { version INTEGER 0, AlgorithmIdentifier, privateKey OCTET STRING }   (RFC 5208)
 * ECPrivateKey   ::= SEQUENCE { version INTEGER 1, OCTET STRING, [0] curve OBJECT IDENTIFIER, ... } (RFC 5915)
 * </pre>
 */
final class PrivateKeys {
    private static final Pattern PEM =
            Pattern.compile(
                    "-----BEGIN ((?:RSA |EC )?PRIVATE KEY)-----([A-Za-z0-9+/=\\s]+)-----END"
                            + " \\1-----");

    private static final List<String> ALGORITHMS = List.of("RSA", "EC", "Ed25519", "Ed448");

    private static final int SEQUENCE = 0x30;
    private static final int OCTET_STRING = 0x04;
    private static final int CONTEXT_0 = 0xA0;
    private static final byte[] VERSION_0 = {0x02, 0x01, 0x00};

    /** rsaEncryption (1.2.840.113549.1.1.1) with its NULL: RFC 8017, appendix A.1. */
    private static final byte[] RSA = {
        0x06,
        0x09,
        0x2A,
        (byte) 0x86,
        0x48,
        (byte) 0x86,
        (byte) 0xF7,
        0x0D,
        0x01,
        0x01,
        0x01,
        0x05,
        0x00
    };

    /** id-ecPublicKey (1.2.840.10045.2.1): RFC 5480, section 2.1.1. */
    private static final byte[] EC = {
        0x06, 0x07, 0x2A, (byte) 0x86, 0x48, (byte) 0xCE, 0x3D, 0x02, 0x01
    };

    private PrivateKeys() {}

    /**
     * The first private key in a PEM text.
     *
     * @throws GeneralSecurityException there is no unencrypted key, or TLS does not have its
     *     algorithm
     */
    static PrivateKey read(String pem) throws GeneralSecurityException {
        Matcher found = PEM.matcher(pem);
        if (!found.find()) {
            throw new InvalidKeySpecException(
                    "there is no private key in PEM that is not encrypted");
        }
        byte[] content = Base64.getMimeDecoder().decode(found.group(2));
        byte[] pkcs8 =
                switch (found.group(1)) {
                    case "RSA PRIVATE KEY" -> wrapped(RSA, content);
                    case "EC PRIVATE KEY" -> wrapped(joined(EC, curveOf(content)), content);
                    default -> content;
                };
        for (String algorithm : ALGORITHMS) {
            try {
                return KeyFactory.getInstance(algorithm)
                        .generatePrivate(new PKCS8EncodedKeySpec(pkcs8));
            } catch (InvalidKeySpecException other) {
                continue;
            }
        }
        throw new InvalidKeySpecException(
                "the private key is of none of " + String.join(", ", ALGORITHMS));
    }

    private static byte[] wrapped(byte[] algorithm, byte[] key) {
        return tagged(
                SEQUENCE,
                joined(VERSION_0, tagged(SEQUENCE, algorithm), tagged(OCTET_STRING, key)));
    }

    /** The curve of an ECPrivateKey: the content of its member [0]. */
    private static byte[] curveOf(byte[] key) throws InvalidKeySpecException {
        try {
            int place = contentOf(key, 0);
            while ((key[place] & 0xFF) != CONTEXT_0) {
                place = contentOf(key, place) + lengthOf(key, place);
            }
            int content = contentOf(key, place);
            return Arrays.copyOfRange(key, content, content + lengthOf(key, place));
        } catch (IndexOutOfBoundsException missing) {
            throw new InvalidKeySpecException(
                    "the EC private key does not name its curve", missing);
        }
    }

    /** The offset of the content of the DER element at an offset. */
    private static int contentOf(byte[] der, int place) {
        int first = der[place + 1] & 0xFF;
        return first < 0x80 ? place + 2 : place + 2 + (first & 0x7F);
    }

    /** The length of the content of the DER element at an offset. */
    private static int lengthOf(byte[] der, int place) {
        int first = der[place + 1] & 0xFF;
        if (first < 0x80) {
            return first;
        }
        int length = 0;
        for (int index = 0; index < (first & 0x7F); index++) {
            length = length << 8 | der[place + 2 + index] & 0xFF;
        }
        return length;
    }

    private static byte[] tagged(int tag, byte[] content) {
        int size = content.length;
        byte[] length =
                size < 0x80
                        ? new byte[] {(byte) size}
                        : size < 0x100
                                ? new byte[] {(byte) 0x81, (byte) size}
                                : new byte[] {(byte) 0x82, (byte) (size >> 8), (byte) size};
        return joined(new byte[] {(byte) tag}, length, content);
    }

    private static byte[] joined(byte[]... parts) {
        ByteArrayOutputStream whole = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            whole.writeBytes(part);
        }
        return whole.toByteArray();
    }
}
