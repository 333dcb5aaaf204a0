package dev.admissiongateway.worker;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.databind.SerializerProvider;
import com.fasterxml.jackson.databind.node.NumericNode;

import java.io.IOException;
import java.math.BigDecimal;
import java.math.BigInteger;

/** A number with its text, which Java would write differently: {@code 1e2}. */
final class WrittenNumber extends NumericNode {
    private static final long serialVersionUID = 1;

    private static final BigDecimal LEAST_INT = BigDecimal.valueOf(Integer.MIN_VALUE);
    private static final BigDecimal MOST_INT = BigDecimal.valueOf(Integer.MAX_VALUE);
    private static final BigDecimal LEAST_LONG = BigDecimal.valueOf(Long.MIN_VALUE);
    private static final BigDecimal MOST_LONG = BigDecimal.valueOf(Long.MAX_VALUE);

    private final BigDecimal value;
    private final String text;

    WrittenNumber(BigDecimal value, String text) {
        this.value = value;
        this.text = text;
    }

    @Override
    public JsonToken asToken() {
        return JsonToken.VALUE_NUMBER_FLOAT;
    }

    @Override
    public JsonParser.NumberType numberType() {
        return JsonParser.NumberType.BIG_DECIMAL;
    }

    @Override
    public Number numberValue() {
        return value;
    }

    @Override
    public int intValue() {
        return value.intValue();
    }

    @Override
    public long longValue() {
        return value.longValue();
    }

    @Override
    public double doubleValue() {
        return value.doubleValue();
    }

    @Override
    public BigDecimal decimalValue() {
        return value;
    }

    @Override
    public BigInteger bigIntegerValue() {
        return value.toBigInteger();
    }

    @Override
    public boolean canConvertToInt() {
        return value.compareTo(LEAST_INT) >= 0 && value.compareTo(MOST_INT) <= 0;
    }

    @Override
    public boolean canConvertToLong() {
        return value.compareTo(LEAST_LONG) >= 0 && value.compareTo(MOST_LONG) <= 0;
    }

    @Override
    public String asText() {
        return text;
    }

    @Override
    public void serialize(JsonGenerator generator, SerializerProvider provider) throws IOException {
        generator.writeNumber(text);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof WrittenNumber number && number.text.equals(text);
    }

    @Override
    public int hashCode() {
        return text.hashCode();
    }
}
