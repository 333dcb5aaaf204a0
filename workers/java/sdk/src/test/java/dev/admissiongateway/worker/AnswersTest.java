package dev.admissiongateway.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import admission.worker.v1.WorkerOuterClass.Outcome;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.protobuf.ByteString;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Answers are valid, or cannot be built; and they are encoded as they were built. */
class AnswersTest {
    private static final String SURROGATE = "\ud800";

    private static String refused(Executable building) {
        return assertThrows(InvalidAnswerException.class, building).getMessage();
    }

    @Test
    @DisplayName("A plain allow has no other fields.")
    void allow() {
        Outcome outcome = Outcomes.of(Answer.allow(), "v");
        assertEquals(
                Outcome.newBuilder().setAllow(outcome.getAllow()).setVersion("v").build(), outcome);
        assertEquals(0, outcome.getAllow().getSerializedSize());
    }

    @ParameterizedTest
    @DisplayName("A denial's reason is Kubernetes' name for its code.")
    @CsvSource({
        "400,BadRequest",
        "401,Unauthorized",
        "403,Forbidden",
        "404,NotFound",
        "405,MethodNotAllowed",
        "406,NotAcceptable",
        "409,Conflict",
        "410,Gone",
        "413,RequestEntityTooLarge",
        "415,UnsupportedMediaType",
        "422,Invalid",
        "429,TooManyRequests",
        "500,InternalError",
        "503,ServiceUnavailable",
        "504,Timeout",
        "418,''"
    })
    void reasons(int code, String reason) {
        Deny deny = Answer.deny("no").withCode(code);
        assertEquals(reason, deny.reason());
        assertEquals(code, Outcomes.of(deny, "").getDeny().getCode());
    }

    @Test
    @DisplayName("An explicit reason stays when the code changes.")
    void givenReason() {
        assertEquals("Mine", Answer.deny("no").withReason("Mine").withCode(422).reason());
        assertEquals("Invalid", Answer.deny("no").withCode(409).withCode(422).reason());
    }

    @Test
    @DisplayName("A denial has all its values.")
    void denial() {
        Deny deny =
                Answer.deny("no")
                        .withCauses(
                                new Cause("spec.a", "wrong"),
                                new Cause("spec.b", "missing", "FieldValueRequired"))
                        .withDetails(new Details("n", "g", "k", "u", 7))
                        .withWarnings("careful")
                        .withAuditAnnotation("key", "value")
                        .withCache(CacheHint.atMost(Duration.ofMillis(1500)));
        Outcome outcome = Outcomes.of(deny, "v");
        assertEquals("FieldValueInvalid", outcome.getDeny().getDetails().getCauses(0).getReason());
        assertEquals("spec.b", outcome.getDeny().getDetails().getCauses(1).getField());
        assertEquals(7, outcome.getDeny().getDetails().getRetryAfterSeconds());
        assertEquals(List.of("careful"), List.copyOf(outcome.getWarningsList()));
        assertEquals(Map.of("key", "value"), outcome.getAuditAnnotationsMap());
        assertEquals(1, outcome.getCache().getTtl().getSeconds());
        assertEquals(500_000_000, outcome.getCache().getTtl().getNanos());
    }

    @Test
    @DisplayName("A denial with empty details has none.")
    void noDetails() {
        assertFalse(Outcomes.of(Answer.deny("no"), "").getDeny().hasDetails());
    }

    @Test
    @DisplayName("no-store is encoded.")
    void noStore() {
        assertTrue(
                Outcomes.of(Answer.allow().withCache(CacheHint.noStore()), "")
                        .getCache()
                        .hasNoStore());
    }

    @Test
    @DisplayName("A change that changes nothing is encoded as a plain allow.")
    void emptyChanges() {
        for (Answer answer : List.of(Answer.patch(new Patch()), Answer.merge(Map.of()))) {
            assertEquals(0, Outcomes.of(answer, "").getAllow().getSerializedSize());
        }
        assertEquals(
                "{}",
                Outcomes.of(Answer.mutated(Map.of()), "").getAllow().getObject().toStringUtf8());
    }

    @Test
    @DisplayName(
            "A patch holds its operations in their order, and nothing that happens to a value"
                    + " later.")
    void patch() {
        ObjectNode value = Json.MAPPER.createObjectNode().put("a", 1);
        Patch patch =
                new Patch()
                        .add("/a", value)
                        .remove("/b")
                        .replace("/c", null)
                        .move("/d", "/e")
                        .copy("/f", "/g")
                        .test("", List.of("x"));
        value.put("a", 2);
        assertEquals(
                "[{\"op\":\"add\",\"path\":\"/a\",\"value\":{\"a\":1}},{\"op\":\"remove\",\"path\":\"/b\"},"
                    + "{\"op\":\"replace\",\"path\":\"/c\",\"value\":null},"
                    + "{\"op\":\"move\",\"path\":\"/e\",\"from\":\"/d\"},"
                    + "{\"op\":\"copy\",\"path\":\"/g\",\"from\":\"/f\"},"
                    + "{\"op\":\"test\",\"path\":\"\",\"value\":[\"x\"]}]",
                Answer.patch(patch).change().content().toStringUtf8());
    }

    @Test
    @DisplayName("A patch's path is a JSON Pointer.")
    void paths() {
        assertTrue(refused(() -> new Patch().add("metadata", 1)).contains("JSON Pointer"));
        assertTrue(refused(() -> new Patch().move("a", "/b")).contains("from of move"));
    }

    @Test
    @DisplayName("A whole object and a merge patch are objects.")
    void objects() {
        assertTrue(refused(() -> Answer.mutated(List.of())).contains("must be a JSON object"));
        assertTrue(refused(() -> Answer.merge("text")).contains("must be a JSON object"));
        assertTrue(refused(() -> Answer.merge(null)).contains("is null"));
    }

    @Test
    @DisplayName("NaN and infinities are rejected, and the error has no other values.")
    void notANumber() {
        String message = refused(() -> Answer.merge(Map.of("a", Double.NaN)));
        assertTrue(message.startsWith("merge: cannot be written as JSON"), message);
        assertTrue(
                refused(() -> new Patch().add("/a", Float.POSITIVE_INFINITY))
                        .contains("cannot be written"));
    }

    @Test
    @DisplayName("A value that contains itself is rejected.")
    void endless() {
        Map<String, Object> endless = new HashMap<>();
        endless.put("a", endless);
        assertTrue(refused(() -> Answer.mutated(endless)).contains("cannot be written as JSON"));
    }

    @ParameterizedTest
    @DisplayName("An audit annotation's key has 1 to 63 letters, digits, '-', '_', '.'.")
    @ValueSource(strings = {"", "a/b", "ä", "a b", "a\n"})
    void auditKeys(String key) {
        assertTrue(refused(() -> Answer.allow().withAuditAnnotation(key, "")).contains("the key"));
        assertTrue(
                refused(() -> Answer.allow().withAuditAnnotation("a".repeat(64), ""))
                        .contains("the key"));
        assertEquals(
                63,
                Answer.allow()
                        .withAuditAnnotation("a".repeat(63), "")
                        .auditAnnotations()
                        .keySet()
                        .stream()
                        .mapToInt(String::length)
                        .sum());
    }

    @Test
    @DisplayName("Texts are valid Unicode, and not null.")
    void texts() {
        for (String text : new String[] {null, SURROGATE, "a" + SURROGATE + "b"}) {
            refused(() -> Answer.deny(text));
            refused(() -> Answer.fail(text));
            refused(() -> Answer.allow().withWarnings(text));
            refused(() -> Answer.allow().withAuditAnnotation("a", text));
            refused(() -> new Cause(text, ""));
        }
        assertEquals("🚢", Answer.deny("🚢").message());
    }

    @Test
    @DisplayName("A time to live is from 0 to a hundred years.")
    void timesToLive() {
        assertEquals(Duration.ZERO, CacheHint.atMost(Duration.ZERO).timeToLive());
        refused(() -> CacheHint.atMost(Duration.ofNanos(-1)));
        refused(() -> CacheHint.atMost(Duration.ofDays(36_501)));
        refused(() -> CacheHint.atMost(null));
    }

    @ParameterizedTest
    @DisplayName("An unchanged number keeps its text.")
    @ValueSource(
            strings = {
                "1.0",
                "9007199254740993",
                "1e400",
                "1E+2",
                "1e2",
                "-0",
                "-0.0",
                "0.10",
                "123456789012345678901234567890",
                "1.7976931348623157e308",
                "2147483648",
                "-9223372036854775808",
                "9223372036854775808",
                "0",
                "999999999"
            })
    void numbers(String number) throws Exception {
        String text = "{\"a\":[" + number + "]}";
        JsonNode read = Json.read(ByteString.copyFromUtf8(text));
        assertEquals(text, Answer.mutated(read).change().content().toStringUtf8());
        assertEquals(text, Json.quoted(read));
        JsonNode patched = Answer.patch(new Patch().add("/a", read)).change().value();
        assertEquals(text, Json.quoted(patched.get(0).get("value")));
    }

    @Test
    @DisplayName("Quoted values have only the escapes that JSON requires.")
    void quoted() {
        assertEquals(
                "\"a\\\"b\\\\/ä🚢\\n\\u001f\u007f<&>\"",
                Json.quoted("a\"b\\/ä🚢\n\u001f\u007f<&>"));
    }
}
