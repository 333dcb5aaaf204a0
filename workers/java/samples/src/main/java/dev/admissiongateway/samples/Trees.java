package dev.admissiongateway.samples;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.util.Comparator;
import java.util.List;

/**
 * Access to objects whose fields the API server may not have validated. An absent value, or one of
 * another type, is empty.
 */
final class Trees {
    private static final Comparator<JsonNode> BY_VALUE =
            (one, other) -> {
                if (one.isNumber() && other.isNumber()) {
                    return one.decimalValue().compareTo(other.decimalValue());
                }
                return one.equals(other) ? 0 : 1;
            };

    private Trees() {}

    /** The object at a path; empty: none. */
    static ObjectNode object(JsonNode whole, List<String> path) {
        JsonNode found = whole;
        for (String token : path) {
            found = found instanceof ObjectNode node ? node.get(token) : null;
        }
        return found instanceof ObjectNode node ? node : JsonNodeFactory.instance.objectNode();
    }

    /** The value if it is text, else {@code ""}. */
    static String text(JsonNode value) {
        return value != null && value.isTextual() ? value.textValue() : "";
    }

    /** Whether two JSON values are equal; numbers by their value. */
    static boolean isSame(JsonNode one, JsonNode other) {
        return one == null || other == null ? one == other : one.equals(BY_VALUE, other);
    }

    /** Whether a value is missing, null, false, zero, or empty. */
    static boolean isEmpty(JsonNode value) {
        if (value == null || value.isNull()) {
            return true;
        }
        if (value.isNumber()) {
            return value.decimalValue().signum() == 0;
        }
        if (value.isBoolean()) {
            return !value.booleanValue();
        }
        return value.isTextual() ? value.textValue().isEmpty() : value.isEmpty();
    }
}
