package dev.admissiongateway.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.annotation.JsonPropertyDescription;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.protobuf.ByteString;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** Settings are converted, and all errors are reported with their pointers. */
class SettingsTest {
    enum Level {
        LOW,
        HIGH
    }

    record Inner(@JsonProperty(required = true) String name, int count) {}

    record Everything(
            @JsonProperty(required = true) @JsonPropertyDescription("Who it is for.") String text,
            @JsonProperty("renamed") Integer whole,
            Double number,
            Boolean flag,
            Level level,
            List<Inner> list,
            Map<String, Long> map,
            JsonNode anything,
            ObjectNode object) {}

    @JsonIgnoreProperties(ignoreUnknown = true)
    record Open(String known) {}

    record Picky(int odd) {
        Picky {
            if (odd % 2 == 0) {
                throw new IllegalArgumentException("must be odd, is " + odd);
            }
        }
    }

    private static <S> SettingsType<S> type(Class<S> type) {
        return new SettingsType<>(type, null, null);
    }

    private static <S> SettingsType.Converted<S> read(SettingsType<S> type, String text)
            throws Exception {
        return type.read(ByteString.copyFromUtf8(text));
    }

    private static List<String> errorsOf(SettingsType<?> type, String text) {
        InvalidSettingsException error =
                assertThrows(InvalidSettingsException.class, () -> read(type, text));
        return error.errors().stream().map(SettingsError::toString).toList();
    }

    @Test
    @DisplayName("All errors are reported with their pointers.")
    void allMistakes() {
        assertEquals(
                List.of(
                        "/text: Required value",
                        "/renamed: must be a whole number, is a number",
                        "/number: must be a number, is a text",
                        "/flag: must be a boolean, is a number",
                        "/level: must be one of \"LOW\", \"HIGH\", is \"MIDDLE\"",
                        "/list/0/name: Required value",
                        "/list/0/count: must be from -2147483648 to 2147483647, is 4294967296",
                        "/list/1: must be an object, is an array",
                        "/map/a~1b: must be a whole number, is null",
                        "/object: must be an object, is a text",
                        "/other: Unknown member; known are: anything, flag, level, list, map,"
                                + " number, object, renamed, text"),
                errorsOf(
                        type(Everything.class),
                        """
                        {"renamed": 1.5, "number": "1", "flag": 1, "level": "MIDDLE",
                         "list": [{"count": 4294967296}, []], "map": {"a/b": null}, "object": "", "other": 1}\
                        """));
    }

    @Test
    @DisplayName("Valid settings are converted; missing or null members are null.")
    void converted() throws Exception {
        String text =
                """
                {"text": "a", "renamed": 3, "level": "HIGH", "list": [{"name": "n", "count": 2}], "map": {"b": 1, "a": 2},
                 "anything": [1.0, 1e2], "number": null}\
                """;
        Everything settings = read(type(Everything.class), text).settings();
        assertEquals(3, settings.whole());
        assertEquals(Level.HIGH, settings.level());
        assertEquals(List.of(new Inner("n", 2)), settings.list());
        assertEquals(List.of("b", "a"), new ArrayList<>(settings.map().keySet()));
        assertEquals("[1.0,1e2]", settings.anything().toString());
        assertEquals(null, settings.number());
    }

    @ParameterizedTest
    @DisplayName("Settings are one JSON object.")
    @ValueSource(
            strings = {"", " ", "[]", "null", "1", "{", "{} {}", "\u0000{", "{\"a\":}", "\ufeff{}"})
    void noObject(String text) {
        List<String> found = errorsOf(type(Open.class), text);
        assertEquals(1, found.size());
        assertTrue(found.get(0).startsWith("The settings must be one JSON object"), found.get(0));
    }

    @Test
    @DisplayName("Text that is not UTF-8 is not JSON.")
    void noUtf8() {
        ByteString text =
                ByteString.copyFrom(new byte[] {'{', '"', (byte) 0xff, '"', ':', '1', '}'});
        assertThrows(InvalidSettingsException.class, () -> type(Open.class).read(text));
    }

    @Test
    @DisplayName("Settings nested deeper than the stack are an error, and do not end the worker.")
    void deep() {
        assertEquals(1, errorsOf(type(Open.class), "{\"a\":" + "[".repeat(100_000)).size());
    }

    @Test
    @DisplayName("Unknown members are warnings if the type ignores them.")
    void unknownMembers() throws Exception {
        assertEquals(
                List.of("/other is no member of these settings and is ignored"),
                read(type(Open.class), "{\"other\": 1}").warnings());
    }

    @Test
    @DisplayName("A policy without settings accepts {} only.")
    void none() throws Exception {
        assertEquals(List.of(), read(type(SettingsType.None.class), " {} ").warnings());
        assertEquals(
                List.of("/a: Unknown member; known are: none"),
                errorsOf(type(SettingsType.None.class), "{\"a\":1}"));
    }

    @Test
    @DisplayName("An exception of a record's constructor is an error.")
    void constructors() {
        assertEquals(List.of("must be odd, is 2"), errorsOf(type(Picky.class), "{\"odd\": 2}"));
    }

    @Test
    @DisplayName(
            "The author's check reports errors and warnings; its exception is an error with"
                    + " the type only.")
    void checks() throws Exception {
        SettingsType<Open> errors =
                new SettingsType<>(
                        Open.class,
                        open ->
                                List.of(
                                        new SettingsError("/known", "no"),
                                        new SettingsWarning("w")),
                        null);
        assertEquals(List.of("/known: no"), errorsOf(errors, "{}"));
        SettingsType<Open> warnings =
                new SettingsType<>(Open.class, open -> List.of(new SettingsWarning("w")), null);
        assertEquals(List.of("w"), read(warnings, "{}").warnings());
        SettingsType<Open> broken =
                new SettingsType<Open>(
                        Open.class,
                        open -> {
                            throw new IllegalStateException("secret");
                        },
                        null);
        String message = errorsOf(broken, "{}").get(0);
        assertTrue(
                message.contains("IllegalStateException") && !message.contains("secret"), message);
    }

    @Test
    @DisplayName("The schema is of 2020-12, with required members and descriptions.")
    void schema() throws Exception {
        JsonNode schema = Json.read(type(Everything.class).schema());
        assertEquals(
                "https://json-schema.org/draft/2020-12/schema", schema.get("$schema").textValue());
        assertEquals("[\"text\"]", schema.get("required").toString());
        assertFalse(schema.get("additionalProperties").booleanValue());
        assertEquals(
                "{\"type\":\"string\",\"description\":\"Who it is for.\"}",
                schema.at("/properties/text").toString());
        assertEquals(
                "[\"name\",\"count\"]", schema.at("/properties/list/items/required").toString());
        assertEquals("integer", schema.at("/properties/map/additionalProperties/type").textValue());
        assertFalse(Json.read(type(Open.class).schema()).has("additionalProperties"));
    }

    @Test
    @DisplayName("Equal settings are converted once, and shared by concurrent calls.")
    void once() throws Exception {
        AtomicInteger conversions = new AtomicInteger();
        CountDownLatch all = new CountDownLatch(8);
        SettingsType<Open> type =
                new SettingsType<>(
                        Open.class,
                        open -> {
                            conversions.incrementAndGet();
                            return List.of();
                        },
                        null);
        SettingsCache kept = new SettingsCache(Limits.defaults());
        ExecutorService threads = Executors.newFixedThreadPool(8);
        List<Future<Object>> read = new ArrayList<>();
        for (int index = 0; index < 8; index++) {
            read.add(
                    threads.submit(
                            () -> {
                                all.countDown();
                                all.await();
                                return kept.read("a", type, ByteString.copyFromUtf8("{}"));
                            }));
        }
        for (Future<Object> one : read) {
            assertSame(read.get(0).get(), one.get(ServedWorker.TIMEOUT_SECONDS, TimeUnit.SECONDS));
        }
        threads.shutdown();
        assertEquals(1, conversions.get());
    }

    @Test
    @DisplayName(
            "The cache has the most recently used settings, up to a number, and no invalid"
                    + " ones.")
    void bounded() throws Exception {
        AtomicInteger conversions = new AtomicInteger();
        SettingsType<Open> type =
                new SettingsType<>(
                        Open.class,
                        open -> {
                            conversions.incrementAndGet();
                            return List.of();
                        },
                        null);
        SettingsCache kept = new SettingsCache(Limits.defaults().withSettingsKept(2));
        for (String known :
                List.of("a", "b", "a", "c", "a", "b")) { // c removes b, since a was used after it
            kept.read("p", type, ByteString.copyFromUtf8("{\"known\":\"" + known + "\"}"));
        }
        assertEquals(4, conversions.get());
        for (int attempt = 0; attempt < 2; attempt++) {
            assertThrows(
                    InvalidSettingsException.class,
                    () -> kept.read("p", type, ByteString.copyFromUtf8("[]")));
        }
    }
}
