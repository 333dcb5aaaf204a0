package dev.admissiongateway.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.google.protobuf.ByteString;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.concurrent.CompletableFuture;

/** Testing calls a policy without a server, with only its inputs. */
class TestingTest {
    record Wanted(String wanted) {}

    private static final IOException THROWN = new IOException("its own");

    private static final Worker WORKER =
            new Worker("w", "1")
                    .register(
                            Policy.validating("echo")
                                    .inputs("/object/a/*/b", "/oldObject")
                                    .judge(request -> Answer.deny(request.document().toString())))
                    .register(
                            Policy.validating("all")
                                    .judge(request -> Answer.deny(request.document().toString())))
                    .register(
                            Policy.validating("settings")
                                    .settings(Wanted.class)
                                    .judge(
                                            (request, settings) ->
                                                    Answer.deny(settings.wanted() + request.uid())))
                    .register(
                            Policy.validating("later")
                                    .judgeLater(
                                            request ->
                                                    CompletableFuture.completedFuture(
                                                            Answer.deny("later"))))
                    .register(
                            Policy.validating("later-throws")
                                    .judgeLater(request -> CompletableFuture.failedFuture(THROWN)))
                    .register(
                            Policy.validating("throws")
                                    .judge(
                                            request -> {
                                                throw THROWN;
                                            }))
                    .register(Policy.validating("nothing").judge(request -> null))
                    .register(Policy.validating("misuse").judge(request -> Answer.merge(Map.of())));

    private static String denial(String policy, Object request) throws Exception {
        return ((Deny) Testing.review(WORKER, policy, request)).message();
    }

    @Test
    @DisplayName(
            "A policy gets its inputs, with arrays of full length, and the members of every"
                    + " document.")
    void projection() throws Exception {
        String request =
                """
                {"uid": "u", "operation": "CREATE", "name": "n", "namespaceObject": {}, "kind": {"kind": "K"},
                 "object": {"c": 1, "a": [{"b": 1.0, "c": 2}, 3, [4], "x", {"c": 1}]}, "oldObject": {"all": [1]}}\
                """;
        assertEquals(
                "{\"operation\":\"CREATE\",\"kind\":{\"kind\":\"K\"},"
                    + "\"object\":{\"a\":[{\"b\":1.0},null,[],null,{}]},\"oldObject\":{\"all\":[1]}}",
                denial("echo", request).replace("[null]", "[]"));
        assertEquals("{\"name\":\"n\"}", denial("all", Map.of("name", "n")));
        assertEquals(
                "{\"name\":\"n\"}",
                denial("all", "{\"uid\":\"u\",\"name\":\"n\",\"namespaceObject\":{}}"));
    }

    @Test
    @DisplayName("An AdmissionReview is accepted, in any form that Jackson writes.")
    void reviews() throws Exception {
        Object review = Map.of("kind", "AdmissionReview", "request", Map.of("operation", "CREATE"));
        assertEquals("{\"operation\":\"CREATE\"}", denial("all", review));
        assertEquals(
                "{\"operation\":\"CREATE\"}",
                denial("all", Json.read(ByteString.copyFromUtf8(Json.quoted(review)))));
        assertThrows(IllegalArgumentException.class, () -> denial("all", List.of()));
    }

    @Test
    @DisplayName("Settings are converted from JSON; errors in them are thrown.")
    void settings() throws Exception {
        Answer answer =
                Testing.review(WORKER, "settings", "{\"uid\":\"-u\"}", Map.of("wanted", "w"));
        assertEquals(Answer.deny("w-u"), answer);
        assertThrows(
                InvalidSettingsException.class,
                () -> Testing.review(WORKER, "settings", "{}", Map.of("wanted", 1)));
    }

    @Test
    @DisplayName("Later answers are returned, and exceptions are thrown.")
    void results() throws Exception {
        assertEquals(Answer.deny("later"), Testing.review(WORKER, "later", "{}"));
        assertEquals(Answer.allow(), Testing.review(WORKER, "nothing", "{}"));
        assertSame(
                THROWN,
                assertThrows(IOException.class, () -> Testing.review(WORKER, "throws", "{}")));
        assertSame(
                THROWN,
                assertThrows(
                        IOException.class, () -> Testing.review(WORKER, "later-throws", "{}")));
        assertThrows(InvalidAnswerException.class, () -> Testing.review(WORKER, "misuse", "{}"));
        assertThrows(NoSuchElementException.class, () -> Testing.review(WORKER, "unknown", "{}"));
    }
}
