package dev.admissiongateway.samples;

import com.fasterxml.jackson.databind.JsonNode;
import com.google.re2j.Matcher;
import com.google.re2j.Pattern;

import dev.admissiongateway.worker.Json;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;

/**
 * Kubernetes' quantities (k8s.io/apimachinery/pkg/api/resource): {@code 100m}, {@code 1Gi}, {@code
 * 1e3}, {@code 0.5}.
 *
 * <pre>
 * &lt;quantity>        ::= &lt;signedNumber>&lt;suffix>
 * &lt;suffix>          ::= &lt;binarySI> | &lt;decimalExponent> | &lt;decimalSI>
 * &lt;binarySI>        ::= Ki | Mi | Gi | Ti | Pi | Ei
 * &lt;decimalSI>       ::= n | u | m | "" | k | M | G | T | P | E
 * &lt;decimalExponent> ::= "e" &lt;signedNumber> | "E" &lt;signedNumber>
 * </pre>
 *
 * <p>"No matter which of the three exponent forms is used, no quantity may represent a number
 * greater than 2^63-1 in magnitude, nor may it have more than 3 decimal places. Numbers larger or
 * more precise will be capped or rounded up. (E.g.: 0.1m will rounded up to 1m.)" The code behind
 * it rounds up at a billionth, and so does this.
 */
final class Quantities {
    private static final Pattern QUANTITY =
            Pattern.compile(
                    "([+-]?(?:[0-9]+(?:\\.[0-9]*)?|\\.[0-9]+))(?:[eE]([+-]?[0-9]{1,9})|([KMGTPE]i|[numkMGTPE])?)");

    private static final String DECIMAL = "num kMGTPE";
    private static final String BINARY = " KMGTPE";
    private static final int NO_POWER = DECIMAL.indexOf(' ');

    private static final BigDecimal LARGEST =
            new BigDecimal(BigInteger.TWO.pow(63).subtract(BigInteger.ONE));

    /** Decimal places that count: a billionth is the smallest step. */
    private static final int PLACES = 9;

    /**
     * The longest accepted text. The largest quantity has 19 digits before and 9 after the point.
     */
    private static final int LONGEST = 128;

    /**
     * Caps exponents: with 10^256 every number exceeds LARGEST, and with 10^-256 one of at most 128
     * digits is below the smallest step. So 1e999999999 costs no memory.
     */
    private static final int EXPONENTS = 256;

    private Quantities() {}

    /**
     * The exact value of a quantity, capped and rounded up as Kubernetes does.
     *
     * @param value in JSON: a string or a number
     * @throws IllegalArgumentException the value is not a quantity
     */
    static BigDecimal quantity(JsonNode value) {
        String written = text(value);
        Matcher found = QUANTITY.matcher(written);
        boolean quotes = value.isTextual() || value.isNumber();
        if (!quotes || written.codePointCount(0, written.length()) > LONGEST || !found.matches()) {
            throw new IllegalArgumentException(
                    Json.quoted(shortened(written)) + " is no quantity such as 100m, 0.5 or 1Gi");
        }
        BigDecimal exact = new BigDecimal(number(found.group(1)));
        if (found.group(2) != null) {
            int exponent =
                    Math.max(-EXPONENTS, Math.min(EXPONENTS, Integer.parseInt(found.group(2))));
            exact = exact.scaleByPowerOfTen(exponent);
        } else if (found.group(3) != null) {
            exact = scaled(exact, found.group(3));
        }
        BigDecimal magnitude = exact.abs().setScale(PLACES, RoundingMode.CEILING).min(LARGEST);
        return exact.signum() < 0 ? magnitude.negate() : magnitude;
    }

    /** The text of a quantity in JSON: a string, or a number as written. */
    static String text(JsonNode written) {
        return written.isTextual() ? written.textValue() : Json.quoted(written);
    }

    private static BigDecimal scaled(BigDecimal number, String suffix) {
        if (suffix.endsWith("i")) {
            return number.multiply(
                    new BigDecimal(BigInteger.TWO.pow(10 * BINARY.indexOf(suffix.charAt(0)))));
        }
        return number.scaleByPowerOfTen(3 * (DECIMAL.indexOf(suffix) - NO_POWER));
    }

    /** {@code 1.} and {@code .5} are numbers in Kubernetes; in Java only {@code .5} is. */
    private static String number(String written) {
        return written.endsWith(".") ? written + "0" : written;
    }

    private static String shortened(String written) {
        int characters = Math.min(LONGEST, written.codePointCount(0, written.length()));
        return written.substring(0, written.offsetByCodePoints(0, characters));
    }
}
