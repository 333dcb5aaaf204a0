package dev.admissiongateway.worker;

import com.fasterxml.jackson.core.JacksonException;
import com.fasterxml.jackson.databind.JsonNode;
import com.google.protobuf.ByteString;

/**
 * The change of an allow: a JSON Patch, a JSON Merge Patch, or the whole object, as JSON text.
 *
 * <p>The text is encoded when the answer is created, so that an encoding error occurs in the
 * policy's function, and later changes of the author's values have no effect. The gateway checks
 * whether a patch applies.
 *
 * @param kind of the change
 * @param content JSON text in UTF-8; paths start at the object
 */
public record Change(Kind kind, ByteString content) {
    /** The form of a change. */
    public enum Kind {
        /** RFC 6902. */
        JSON_PATCH,
        /** RFC 7386. */
        MERGE_PATCH,
        /** The whole object. */
        OBJECT
    }

    static Change jsonPatch(Patch operations) {
        return new Change(Kind.JSON_PATCH, written(operations.operations(), "patch"));
    }

    static Change mergePatch(Object changes) {
        return new Change(Kind.MERGE_PATCH, object(changes, "merge"));
    }

    static Change wholeObject(Object whole) {
        return new Change(Kind.OBJECT, object(whole, "mutated"));
    }

    /** The decoded content, for tests: the operations, the merge patch or the object. */
    public JsonNode value() {
        try {
            return Json.read(content);
        } catch (JacksonException error) {
            throw new IllegalStateException("a change holds what is no JSON", error);
        }
    }

    /** Whether the change can be omitted. */
    boolean isEmpty() {
        return switch (kind) {
            case JSON_PATCH -> content.equals(ByteString.copyFromUtf8("[]"));
            case MERGE_PATCH -> content.equals(ByteString.copyFromUtf8("{}"));
            case OBJECT -> false;
        };
    }

    private static ByteString object(Object value, String what) {
        ByteString content = written(value, what);
        // Jackson writes no white space, so the first character shows whether the text is an
        // object.
        if (content.isEmpty() || content.byteAt(0) != '{') {
            throw new InvalidAnswerException(
                    what + ": must be a JSON object, is " + Json.typeOf(value));
        }
        return content;
    }

    /** A value as JSON text. The error has the type of the value, never its content. */
    private static ByteString written(Object value, String what) {
        try {
            return Json.write(value);
        } catch (JacksonException | StackOverflowError error) {
            String type = error.getClass().getSimpleName();
            throw new InvalidAnswerException(what + ": cannot be written as JSON: " + type, error);
        }
    }
}
