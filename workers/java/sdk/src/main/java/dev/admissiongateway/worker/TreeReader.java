package dev.admissiongateway.worker;

import com.fasterxml.jackson.core.JsonParseException;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.databind.DeserializationContext;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.deser.std.StdDeserializer;
import com.fasterxml.jackson.databind.module.SimpleModule;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.BigIntegerNode;
import com.fasterxml.jackson.databind.node.BooleanNode;
import com.fasterxml.jackson.databind.node.DecimalNode;
import com.fasterxml.jackson.databind.node.IntNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.LongNode;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;

import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;

/**
 * Reads trees in which numbers keep their text. Jackson's reader turns {@code 1e2} into {@code
 * 1E+2} and {@code -0.0} into {@code 0.0}, and a policy that returns the whole object would change
 * it.
 */
final class TreeReader<N extends JsonNode> extends StdDeserializer<N> {
    private static final long serialVersionUID = 1;

    /** Digits of the largest int, less one: this many digits and a sign always fit. */
    private static final int INT_CHARACTERS = 9;

    /** Digits of the largest long, less one. */
    private static final int LONG_CHARACTERS = 18;

    private final Class<N> kind;

    private TreeReader(Class<N> kind) {
        super(kind);
        this.kind = kind;
    }

    /** Registers the reader for JsonNodes, also inside an author's types. */
    static void addTo(SimpleModule module) {
        module.addDeserializer(JsonNode.class, new TreeReader<>(JsonNode.class));
        module.addDeserializer(ObjectNode.class, new TreeReader<>(ObjectNode.class));
        module.addDeserializer(ArrayNode.class, new TreeReader<>(ArrayNode.class));
    }

    @Override
    public N deserialize(JsonParser parser, DeserializationContext context) throws IOException {
        JsonNode tree = read(parser);
        if (!kind.isInstance(tree)) {
            return kind.cast(context.handleUnexpectedToken(kind, parser));
        }
        return kind.cast(tree);
    }

    @Override
    public N getNullValue(DeserializationContext context) {
        return kind.isInstance(NullNode.instance) ? kind.cast(NullNode.instance) : null;
    }

    /** The value that begins with the parser's current token. The parser limits its nesting. */
    static JsonNode read(JsonParser parser) throws IOException {
        return switch (parser.currentToken()) {
            case START_OBJECT -> object(parser);
            case START_ARRAY -> array(parser);
            case VALUE_STRING -> TextNode.valueOf(parser.getText());
            case VALUE_NUMBER_INT -> whole(parser.getText());
            case VALUE_NUMBER_FLOAT -> decimal(parser);
            case VALUE_TRUE -> BooleanNode.TRUE;
            case VALUE_FALSE -> BooleanNode.FALSE;
            case VALUE_NULL -> NullNode.instance;
            default -> throw new JsonParseException(parser, "no JSON value begins here");
        };
    }

    private static ObjectNode object(JsonParser parser) throws IOException {
        ObjectNode made = JsonNodeFactory.instance.objectNode();
        for (String name = parser.nextFieldName(); name != null; name = parser.nextFieldName()) {
            parser.nextToken();
            made.set(name, read(parser));
        }
        return made;
    }

    private static ArrayNode array(JsonParser parser) throws IOException {
        ArrayNode made = JsonNodeFactory.instance.arrayNode();
        while (parser.nextToken() != JsonToken.END_ARRAY) {
            made.add(read(parser));
        }
        return made;
    }

    private static JsonNode whole(String text) {
        if (text.equals("-0")) {
            return new WrittenNumber(BigDecimal.ZERO, text);
        }
        if (text.length() <= INT_CHARACTERS) {
            return IntNode.valueOf(Integer.parseInt(text));
        }
        if (text.length() <= LONG_CHARACTERS) {
            return LongNode.valueOf(Long.parseLong(text));
        }
        BigInteger value = new BigInteger(text);
        return value.bitLength() < Long.SIZE
                ? LongNode.valueOf(value.longValue())
                : BigIntegerNode.valueOf(value);
    }

    private static JsonNode decimal(JsonParser parser) throws IOException {
        String text = parser.getText();
        try {
            BigDecimal value = new BigDecimal(text);
            return value.toString().equals(text)
                    ? DecimalNode.valueOf(value)
                    : new WrittenNumber(value, text);
        } catch (NumberFormatException beyond) {
            throw new JsonParseException(parser, "a number's exponent has more than 31 bits");
        }
    }
}
