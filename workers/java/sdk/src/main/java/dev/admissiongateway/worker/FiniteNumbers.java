package dev.admissiongateway.worker;

import com.fasterxml.jackson.core.JsonGenerationException;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.util.JsonGeneratorDelegate;

import java.io.IOException;

/**
 * A generator that rejects NaN and infinities, which JSON cannot express. Jackson would write the
 * string {@code "NaN"}.
 */
final class FiniteNumbers extends JsonGeneratorDelegate {
    private FiniteNumbers(JsonGenerator generator) {
        super(generator, false);
    }

    static JsonGenerator only(JsonGenerator generator) {
        return new FiniteNumbers(generator);
    }

    @Override
    public void writeNumber(double value) throws IOException {
        refuse(Double.isFinite(value));
        super.writeNumber(value);
    }

    @Override
    public void writeNumber(float value) throws IOException {
        refuse(Float.isFinite(value));
        super.writeNumber(value);
    }

    private void refuse(boolean finite) throws IOException {
        if (!finite) {
            throw new JsonGenerationException("NaN and infinities are no JSON numbers", this);
        }
    }
}
