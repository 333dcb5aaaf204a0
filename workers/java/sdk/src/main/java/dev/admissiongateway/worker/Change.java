package dev.admissiongateway.worker;

import com.fasterxml.jackson.core.JacksonException;
import com.fasterxml.jackson.databind.JsonNode;
import com.google.protobuf.ByteString;

/**
 * What an allow changes: a JSON Patch, a JSON Merge Patch, or the whole object, as JSON text.
 *
 * <p>The text is made where the answer is made, so that what cannot be written fails inside the
 * policy's own function, and so that nothing that the author does to the values later changes the
 * answer. Whether a patch applies is the gateway's to say.
 *
 * @param kind in which of three forms
 * @param content JSON text in UTF-8, paths over the object
 */
public record Change(Kind kind, ByteString content) {
    /** In which of three forms a policy says what to change. */
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

    /** The content parsed, for tests: the operations, the merge patch or the object. */
    public JsonNode value() {
        try {
            return Json.read(content);
        } catch (JacksonException error) {
            throw new IllegalStateException("a change holds what is no JSON", error);
        }
    }

    /** Whether it changes nothing, and so need not travel. */
    boolean isEmpty() {
        return switch (kind) {
            case JSON_PATCH -> content.equals(ByteString.copyFromUtf8("[]"));
            case MERGE_PATCH -> content.equals(ByteString.copyFromUtf8("{}"));
            case OBJECT -> false;
        };
    }

    private static ByteString object(Object value, String what) {
        ByteString content = written(value, what);
        // Jackson writes without white space, so an object's first character tells.
        if (content.isEmpty() || content.byteAt(0) != '{') {
            throw new InvalidAnswerException(
                    what + ": must be a JSON object, is " + Json.typeOf(value));
        }
        return content;
    }

    /** A value as JSON text; the error says its type and never what it holds. */
    private static ByteString written(Object value, String what) {
        try {
            return Json.write(value);
        } catch (JacksonException | StackOverflowError error) {
            String type = error.getClass().getSimpleName();
            throw new InvalidAnswerException(what + ": cannot be written as JSON: " + type, error);
        }
    }
}
