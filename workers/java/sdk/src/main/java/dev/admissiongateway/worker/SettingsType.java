package dev.admissiongateway.worker;

import com.fasterxml.jackson.core.JacksonException;
import com.fasterxml.jackson.databind.JsonMappingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.exc.ValueInstantiationException;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.protobuf.ByteString;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.function.Function;
import java.util.logging.Level;
import java.util.stream.Collectors;

/**
 * Converts and checks a policy's settings: JSON from the operator's configuration.
 *
 * <p>Settings are one JSON object; no settings are {@code {}}. The same conversion runs in {@code
 * ValidateSettings} (when the configuration is loaded) and before the first call.
 *
 * @param type a record, or another type that Jackson reads from an object
 * @param check the author's check, for what a type cannot express; null: none
 * @param givenSchema the author's JSON Schema; null: it is generated from the type
 */
record SettingsType<S>(
        Class<S> type,
        Function<? super S, ? extends Collection<? extends Finding>> check,
        String givenSchema) {
    private static final String DIALECT = "https://json-schema.org/draft/2020-12/schema";

    /** The settings of a policy without settings: only {@code {}} is valid. */
    record None() {}

    /** Settings, with warnings for the operator. */
    record Converted<S>(S settings, List<String> warnings) {}

    /** A JSON Schema (2020-12) of the settings, as JSON text. */
    ByteString schema() {
        if (givenSchema != null) {
            return ByteString.copyFromUtf8(givenSchema);
        }
        ObjectNode schema = JsonNodeFactory.instance.objectNode().put("$schema", DIALECT);
        schema.setAll(shape().schema());
        return ByteString.copyFromUtf8(schema.toString());
    }

    /** Sets the author's schema; {@code policy} is for the error. */
    SettingsType<S> withSchema(String text, String policy) {
        try {
            if (!Json.read(ByteString.copyFromUtf8(text)).isObject()) {
                throw new IllegalArgumentException(
                        "policy " + policy + ": the schema must be a JSON object");
            }
        } catch (JacksonException error) {
            throw new IllegalArgumentException(
                    "policy " + policy + ": the schema must be JSON", error);
        }
        return new SettingsType<>(type, check, text);
    }

    /**
     * Converts the JSON text of settings.
     *
     * @throws InvalidSettingsException all errors in the settings
     */
    Converted<S> read(ByteString text) throws InvalidSettingsException {
        List<Finding> found = new ArrayList<>();
        shape().check(parsed(text), "", found);
        S settings = errorsOf(found).isEmpty() ? bound(text, found) : null;
        if (settings != null && check != null) {
            found.addAll(checked(settings));
        }
        List<SettingsError> errors = errorsOf(found);
        if (!errors.isEmpty()) {
            throw new InvalidSettingsException(errors);
        }
        return new Converted<>(settings, warningsOf(found));
    }

    private Shape shape() {
        Shape shape = Shapes.of(type);
        return shape == Shape.Plain.ANYTHING ? Shape.Plain.OBJECT : shape;
    }

    private static JsonNode parsed(ByteString text) throws InvalidSettingsException {
        JsonNode value;
        try {
            value = Json.read(text);
        } catch (JacksonException error) {
            throw whole(
                    "The settings must be one JSON object, never empty: " + Json.positionOf(error));
        }
        if (!value.isObject()) {
            throw whole("The settings must be one JSON object, found " + Json.typeOf(value));
        }
        return value;
    }

    /** Converts with Jackson; null: Jackson rejects the value, and the error is in found. */
    private S bound(ByteString text, List<Finding> found) {
        try {
            return Json.MAPPER.readValue(text.newInput(), type);
        } catch (ValueInstantiationException error) {
            // The constructor of the type has thrown: its message is for the author of the
            // settings.
            found.add(
                    new SettingsError(
                            placeOf(error), String.valueOf(error.getCause().getMessage())));
        } catch (JsonMappingException error) {
            found.add(new SettingsError(placeOf(error), error.getOriginalMessage()));
        } catch (IOException | RuntimeException | StackOverflowError error) {
            found.add(unchecked(error));
        }
        return null;
    }

    private Collection<? extends Finding> checked(S settings) {
        try {
            Collection<? extends Finding> found = check.apply(settings);
            return found == null ? List.of() : found;
        } catch (RuntimeException | StackOverflowError | AssertionError error) {
            return List.of(unchecked(error));
        }
    }

    private SettingsError unchecked(Throwable error) {
        Log.LOGGER.log(
                Level.SEVERE,
                error,
                () -> "the check of settings of type " + type.getName() + " threw");
        return new SettingsError(
                "",
                "The settings could not be checked: "
                        + error.getClass().getSimpleName()
                        + " in the worker; see its log");
    }

    private static String placeOf(JsonMappingException error) {
        return error.getPath().stream()
                .map(
                        step ->
                                Pointers.pointer(
                                        step.getFieldName() == null
                                                ? step.getIndex()
                                                : step.getFieldName()))
                .collect(Collectors.joining());
    }

    private static InvalidSettingsException whole(String message) {
        return new InvalidSettingsException(List.of(new SettingsError("", message)));
    }

    private static List<SettingsError> errorsOf(List<Finding> found) {
        return found.stream()
                .filter(SettingsError.class::isInstance)
                .map(SettingsError.class::cast)
                .toList();
    }

    private static List<String> warningsOf(List<Finding> found) {
        return found.stream()
                .filter(SettingsWarning.class::isInstance)
                .map(finding -> ((SettingsWarning) finding).message())
                .toList();
    }
}
