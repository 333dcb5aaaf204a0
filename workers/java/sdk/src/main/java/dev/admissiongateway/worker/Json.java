package dev.admissiongateway.worker;

import com.fasterxml.jackson.core.JacksonException;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonLocation;
import com.fasterxml.jackson.core.JsonParseException;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.MapperFeature;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.cfg.CoercionAction;
import com.fasterxml.jackson.databind.cfg.CoercionInputShape;
import com.fasterxml.jackson.databind.cfg.JsonNodeFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.module.SimpleModule;
import com.fasterxml.jackson.databind.type.LogicalType;
import com.google.protobuf.ByteString;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;

/**
 * Reads and writes JSON of the contract, in UTF-8, with Jackson. Unchanged numbers keep their text;
 * nothing is guessed, rounded or coerced.
 */
public final class Json {
    /**
     * The deepest nesting. kube-apiserver's limit for JSON is 10,000, the gateway's 256. This is
     * Jackson's default, at which no thread's stack overflows.
     */
    private static final int DEEPEST = 1000;

    /** Strings and keys have no limit of their own: the message size limits them. */
    private static final int UNBOUNDED = Integer.MAX_VALUE;

    private static final JsonFactory FACTORY =
            JsonFactory.builder()
                    // "JSON text in UTF-8": Jackson would try UTF-16 and UTF-32 too.
                    .disable(JsonFactory.Feature.CHARSET_DETECTION)
                    // Clients choose the names in objects: a table of all names would grow without
                    // limit.
                    .disable(JsonFactory.Feature.INTERN_FIELD_NAMES)
                    .disable(JsonWriteFeature.WRITE_HEX_UPPER_CASE)
                    .streamReadConstraints(
                            StreamReadConstraints.builder()
                                    .maxNestingDepth(DEEPEST)
                                    .maxStringLength(UNBOUNDED)
                                    .maxNameLength(UNBOUNDED)
                                    .build())
                    .build();

    static final JsonMapper MAPPER = mapper();

    private Json() {}

    private static JsonMapper mapper() {
        SimpleModule exact = new SimpleModule("exact trees");
        TreeReader.addTo(exact);
        return JsonMapper.builder(FACTORY)
                .addModule(exact)
                .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
                .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
                .enable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
                .disable(DeserializationFeature.ACCEPT_FLOAT_AS_INT)
                .disable(MapperFeature.ALLOW_COERCION_OF_SCALARS)
                .disable(SerializationFeature.FAIL_ON_EMPTY_BEANS)
                .disable(JsonNodeFeature.STRIP_TRAILING_BIGDECIMAL_ZEROES)
                .withCoercionConfig(
                        LogicalType.Textual,
                        config -> {
                            for (CoercionInputShape shape :
                                    new CoercionInputShape[] {
                                        CoercionInputShape.Integer,
                                        CoercionInputShape.Float,
                                        CoercionInputShape.Boolean
                                    }) {
                                config.setCoercion(shape, CoercionAction.Fail);
                            }
                        })
                .build();
    }

    /**
     * Reads one JSON value.
     *
     * @param text in UTF-8
     * @return a tree in which numbers keep their text
     * @throws JacksonException the text is not one JSON value
     */
    static JsonNode read(ByteString text) throws JacksonException {
        try (InputStream input = text.newInput();
                JsonParser parser = FACTORY.createParser(input)) {
            if (parser.nextToken() == null) {
                throw new JsonParseException(parser, "there is no JSON value");
            }
            JsonNode tree = TreeReader.read(parser);
            if (parser.nextToken() != null) {
                throw new JsonParseException(parser, "something follows the JSON value");
            }
            return tree;
        } catch (JacksonException error) {
            throw error;
        } catch (IOException error) {
            throw new UncheckedIOException("reading from memory failed", error);
        }
    }

    /**
     * A value as JSON text in UTF-8, without white space.
     *
     * @throws JacksonException Jackson cannot write the value, or it has NaN or an infinity
     */
    static ByteString write(Object value) throws JacksonException {
        try (ByteString.Output output = ByteString.newOutput()) {
            MAPPER.writeValue(FiniteNumbers.only(FACTORY.createGenerator(output)), value);
            return output.toByteString();
        } catch (JacksonException error) {
            throw error;
        } catch (IOException error) {
            throw new UncheckedIOException("writing to memory failed", error);
        }
    }

    /** A value as a tree. */
    static JsonNode node(Object value) {
        try {
            return read(write(value));
        } catch (JacksonException error) {
            throw new IllegalArgumentException("cannot be written as JSON", error);
        }
    }

    /**
     * A value as messages quote it: compact JSON, with no escapes beyond what JSON needs.
     *
     * @param value a string, a JsonNode or another value that Jackson writes; null is {@code null}
     * @throws IllegalArgumentException the value cannot be written as JSON
     */
    public static String quoted(Object value) {
        try {
            return MAPPER.writeValueAsString(value);
        } catch (JacksonException error) {
            throw new IllegalArgumentException("cannot be quoted: " + typeOf(value), error);
        }
    }

    /** The type of a value, for errors, which must not have the value: it may be secret. */
    static String typeOf(Object value) {
        if (value instanceof JsonNode node) {
            return switch (node.getNodeType()) {
                case OBJECT, POJO -> "an object";
                case ARRAY -> "an array";
                case STRING, BINARY -> "a text";
                case NUMBER -> "a number";
                case BOOLEAN -> "a boolean";
                case NULL, MISSING -> "null";
            };
        }
        return value == null ? "null" : value.getClass().getSimpleName();
    }

    /** The position at which a text is not JSON, without a quote of the text. */
    static String positionOf(JacksonException error) {
        JsonLocation location = error.getLocation();
        return location == null
                ? "it is no JSON"
                : "it is no JSON at line "
                        + location.getLineNr()
                        + ", column "
                        + location.getColumnNr();
    }
}
