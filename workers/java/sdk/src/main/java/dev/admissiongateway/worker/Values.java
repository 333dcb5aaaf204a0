package dev.admissiongateway.worker;

import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;

/**
 * Validates an author's values: text, and lists and maps without null. Errors never have values,
 * which may be secret.
 */
final class Values {
    /** The contract's: "letters, digits, {@code -}, {@code _}, {@code .}, at most 63". */
    private static final Pattern AUDIT_KEY = Pattern.compile("[A-Za-z0-9._-]{1,63}");

    private Values() {}

    /** Returns the value, if it is Unicode text. */
    static String text(String value, String what) {
        if (value == null) {
            throw new InvalidAnswerException(what + ": must be text, is null");
        }
        if (!isUnicode(value)) {
            throw new InvalidAnswerException(
                    what + ": holds a lone surrogate, which is no Unicode text");
        }
        return value;
    }

    /** The values as an unmodifiable list without null. */
    static <T> List<T> list(List<T> values, String what) {
        if (values == null || values.stream().anyMatch(value -> value == null)) {
            throw new InvalidAnswerException(what + ": must be a list without null");
        }
        return List.copyOf(values);
    }

    /** The values of a varargs parameter; null is detected later, in the list. */
    static <T> List<T> list(T[] values) {
        return Arrays.asList(values);
    }

    /** The values as an unmodifiable list of texts. */
    static List<String> texts(List<String> values, String what) {
        List<String> checked = list(values, what);
        checked.forEach(value -> text(value, what));
        return checked;
    }

    /** The annotations as an unmodifiable map in their order. */
    static Map<String, String> auditAnnotations(Map<String, String> annotations) {
        if (annotations == null) {
            throw new InvalidAnswerException("auditAnnotations: must be a map, is null");
        }
        annotations.forEach(
                (key, value) -> {
                    if (key == null || !AUDIT_KEY.matcher(key).matches()) {
                        throw new InvalidAnswerException(
                                "auditAnnotations: the key "
                                        + Json.quoted(key)
                                        + " must be 1 to 63 letters, digits, '-', '_', '.'");
                    }
                    text(value, "auditAnnotations[" + Json.quoted(key) + "]");
                });
        return Collections.unmodifiableMap(new LinkedHashMap<>(annotations));
    }

    static <T> List<T> joined(Collection<T> there, Collection<T> more) {
        List<T> all = new ArrayList<>(there);
        all.addAll(more);
        return all;
    }

    static Map<String, String> joined(Map<String, String> there, String key, String value) {
        Map<String, String> all = new LinkedHashMap<>(there);
        all.put(key, value);
        return all;
    }

    private static boolean isUnicode(String value) {
        for (int index = 0; index < value.length(); index++) {
            if (Character.isSurrogate(value.charAt(index))) {
                return encodes(value);
            }
        }
        return true;
    }

    private static boolean encodes(String value) {
        try {
            StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(value));
            return true;
        } catch (CharacterCodingException lone) {
            return false;
        }
    }
}
