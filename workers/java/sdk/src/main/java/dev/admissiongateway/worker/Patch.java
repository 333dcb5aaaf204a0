package dev.admissiongateway.worker;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * A JSON Patch (RFC 6902). Paths are JSON Pointers over the object; {@link Pointers#pointer}
 * returns one with escaped keys.
 *
 * <pre>{@code
 * Answer.patch(new Patch().add(pointer("metadata", "labels", "example.com/team"), "a"))
 * }</pre>
 *
 * <p>Each method returns the patch itself, and throws {@link InvalidAnswerException} for a path
 * that is not a JSON Pointer or a value that cannot be encoded as JSON.
 */
public final class Patch {
    private final ArrayNode operations = JsonNodeFactory.instance.arrayNode();

    /** Adds a member, or inserts an element ({@code -}: at the end). */
    public Patch add(String path, Object value) {
        return with("add", path, null, value);
    }

    /** Removes the value. */
    public Patch remove(String path) {
        return with("remove", path, null, null);
    }

    /** Replaces the value. */
    public Patch replace(String path, Object value) {
        return with("replace", path, null, value);
    }

    /** Moves the value at {@code from}. */
    public Patch move(String from, String path) {
        return with("move", path, from, null);
    }

    /** Copies the value at {@code from}. */
    public Patch copy(String from, String path) {
        return with("copy", path, from, null);
    }

    /** Makes the patch fail if the path has another value. */
    public Patch test(String path, Object value) {
        return with("test", path, null, value);
    }

    /** Whether the patch has no operations, and so changes nothing. */
    public boolean isEmpty() {
        return operations.isEmpty();
    }

    ArrayNode operations() {
        return operations;
    }

    private Patch with(String op, String path, String from, Object value) {
        ObjectNode operation = operations.addObject();
        operation.put("op", op);
        operation.put("path", place(op, "path", path));
        if (from != null) {
            operation.put("from", place(op, "from", from));
        }
        if (!op.equals("remove") && from == null) {
            operation.set("value", node(op, value));
        }
        return this;
    }

    private static String place(String op, String name, String place) {
        if (place == null || !(place.isEmpty() || place.startsWith("/"))) {
            throw new InvalidAnswerException(
                    "patch: "
                            + name
                            + " of "
                            + op
                            + " must be a JSON Pointer such as /metadata/labels");
        }
        return Values.text(place, "patch: " + name + " of " + op);
    }

    private static JsonNode node(String op, Object value) {
        try {
            // A copy: later changes of the author's value must have no effect.
            return value instanceof JsonNode node ? node.deepCopy() : Json.node(value);
        } catch (IllegalArgumentException error) {
            throw new InvalidAnswerException(
                    "patch: the value of "
                            + op
                            + " cannot be written as JSON: "
                            + Json.typeOf(value),
                    error);
        }
    }
}
