package dev.admissiongateway.samples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.cfg.JsonNodeFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import dev.admissiongateway.worker.Allow;
import dev.admissiongateway.worker.Answer;
import dev.admissiongateway.worker.Deny;
import dev.admissiongateway.worker.InvalidSettingsException;
import dev.admissiongateway.worker.Testing;
import dev.admissiongateway.worker.Worker;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/**
 * The samples decide what the Python samples decide, to the letter, on every recorded request and
 * some more. {@code make decisions} writes what that is.
 */
class DecisionsTest {
    private static final Path RECORDINGS =
            Path.of(System.getProperty("repository"), "tests", "recordings");

    private static final ObjectMapper JSON =
            JsonMapper.builder()
                    .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
                    .disable(JsonNodeFeature.STRIP_TRAILING_BIGDECIMAL_ZEROES)
                    .build();

    private static final Worker WORKER = Samples.worker();
    private static final JsonNode DECISIONS = decisions();
    private static final Map<String, JsonNode> REQUESTS = requests();

    private static JsonNode decisions() {
        try (InputStream text = DecisionsTest.class.getResourceAsStream("/decisions.json")) {
            return JSON.readTree(text);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static Map<String, JsonNode> requests() {
        Map<String, JsonNode> found = new TreeMap<>();
        try (DirectoryStream<Path> files = Files.newDirectoryStream(RECORDINGS, "*.json")) {
            for (Path file : files) {
                JsonNode body = JSON.readTree(JSON.readTree(file.toFile()).get("body").textValue());
                if (body.has("request")) {
                    found.put(
                            file.getFileName().toString().replaceFirst("\\.json$", ""),
                            body.get("request"));
                }
            }
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        DECISIONS
                .get("requests")
                .properties()
                .forEach(entry -> found.put(entry.getKey(), entry.getValue()));
        return found;
    }

    static Stream<JsonNode> cases() {
        return StreamSupport.stream(DECISIONS.get("cases").spliterator(), false);
    }

    static Stream<JsonNode> sound() {
        return cases().filter(each -> !each.has("errors"));
    }

    static Stream<JsonNode> unsound() {
        return cases().filter(each -> each.has("errors"));
    }

    @ParameterizedTest(name = "{index}")
    @DisplayName("Every request is decided as the Python samples decide it.")
    @MethodSource("sound")
    void decided(JsonNode each) throws Exception {
        Map<String, String> expected = new TreeMap<>();
        each.get("allowed").forEach(name -> expected.put(name.textValue(), "{}"));
        each.get("decided")
                .properties()
                .forEach(entry -> expected.put(entry.getKey(), entry.getValue().toString()));
        assertEquals(REQUESTS.keySet(), expected.keySet());
        for (Map.Entry<String, JsonNode> request : REQUESTS.entrySet()) {
            Answer answer =
                    Testing.review(
                            WORKER,
                            each.get("policy").textValue(),
                            request.getValue(),
                            each.get("settings"));
            assertEquals(
                    expected.get(request.getKey()), decision(answer).toString(), request.getKey());
        }
    }

    @ParameterizedTest(name = "{index}")
    @DisplayName("Settings that cannot be used are refused at the same places, in the same words.")
    @MethodSource("unsound")
    void refused(JsonNode each) {
        InvalidSettingsException error =
                assertThrows(
                        InvalidSettingsException.class,
                        () ->
                                Testing.review(
                                        WORKER,
                                        each.get("policy").textValue(),
                                        "{}",
                                        each.get("settings")));
        List<String> expected = new ArrayList<>();
        each.get("errors")
                .forEach(
                        one ->
                                expected.add(
                                        one.get(0).textValue() + ": " + one.get(1).textValue()));
        assertEquals(
                expected,
                error.errors().stream().map(one -> one.pointer() + ": " + one.message()).toList());
    }

    @Test
    @DisplayName("Every sample is among them.")
    void complete() {
        Map<String, Boolean> named = new LinkedHashMap<>();
        cases().forEach(each -> named.put(each.get("policy").textValue(), true));
        assertEquals(
                WORKER.policies().keySet().stream().sorted().toList(),
                named.keySet().stream().sorted().toList());
        assertTrue(REQUESTS.size() > 100);
    }

    private static ObjectNode decision(Answer answer) {
        ObjectNode made = JSON.createObjectNode();
        if (answer instanceof Allow allow) {
            ArrayNode warnings = JSON.createArrayNode();
            allow.warnings().forEach(warnings::add);
            if (!warnings.isEmpty()) {
                made.set("warnings", warnings);
            }
            if (allow.change() != null && !allow.change().content().toStringUtf8().equals("[]")) {
                made.put("patch", allow.change().content().toStringUtf8());
            }
        } else if (answer instanceof Deny deny) {
            made.put("deny", deny.message()).put("code", deny.code()).put("reason", deny.reason());
            ArrayNode causes = made.putArray("causes");
            deny.causes()
                    .forEach(
                            cause ->
                                    causes.addArray()
                                            .add(cause.field())
                                            .add(cause.message())
                                            .add(cause.reason()));
        } else {
            made.put("failure", answer.toString());
        }
        return made;
    }
}
