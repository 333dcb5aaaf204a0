package dev.admissiongateway.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.annotation.JsonProperty;
import com.google.protobuf.ByteString;

import io.grpc.Context;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;

/** The document is read as an AdmissionRequest; absent members are null. */
class RequestTest {
    record Meta(String name, Map<String, String> labels) {}

    record Pod(@JsonProperty("metadata") Meta meta) {}

    private static Request request(String text) {
        return new Request(ByteString.copyFromUtf8(text), "uid", Context.ROOT);
    }

    @Test
    @DisplayName("Each member has its type.")
    void members() {
        Request request =
                request(
                        """
                        {"operation": "UPDATE", "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
                         "resource": {"version": "v1", "resource": "pods"}, "subResource": "status",
                         "requestKind": {"kind": "K"}, "requestResource": {"resource": "r"}, "requestSubResource": "s",
                         "name": "n", "namespace": "ns", "dryRun": true, "options": {"kind": "UpdateOptions"},
                         "userInfo": {"username": "u", "groups": ["g"], "extra": {"e": ["1"]}, "new": 1},
                         "object": {"a": 1}, "oldObject": {"a": 2}, "namespaceObject": {"b": 1}, "unknown": 1}\
                        """);
        assertEquals("UPDATE", request.operation());
        assertEquals(new GroupVersionKind("apps", "v1", "Deployment"), request.kind());
        assertEquals(new GroupVersionResource("", "v1", "pods"), request.resource());
        assertEquals("status", request.subResource());
        assertEquals(new GroupVersionKind("", "", "K"), request.requestKind());
        assertEquals(new GroupVersionResource("", "", "r"), request.requestResource());
        assertEquals("s", request.requestSubResource());
        assertEquals("n", request.name());
        assertEquals("ns", request.namespace());
        assertEquals(true, request.dryRun());
        assertEquals(
                new UserInfo("u", null, List.of("g"), Map.of("e", List.of("1"))),
                request.userInfo());
        assertEquals(1, request.object().get("a").intValue());
        assertEquals(2, request.oldObject().get("a").intValue());
        assertEquals("{\"b\":1}", request.namespaceObject().toString());
        assertEquals("UpdateOptions", request.options().get("kind").textValue());
        assertTrue(request.document().has("unknown"));
        assertEquals("uid", request.uid());
    }

    @ParameterizedTest
    @DisplayName("Absent and null members are null.")
    @ValueSource(
            strings = {
                "{}",
                "{\"object\":null,\"name\":null,\"kind\":null,\"dryRun\":null,\"userInfo\":null,\"operation\":null}"
            })
    void absent(String text) {
        Request request = request(text);
        List<Function<Request, Object>> all =
                List.of(
                        Request::operation,
                        Request::kind,
                        Request::resource,
                        Request::subResource,
                        Request::name,
                        Request::namespace,
                        Request::userInfo,
                        Request::dryRun,
                        Request::object,
                        Request::oldObject,
                        Request::options,
                        Request::namespaceObject,
                        Request::requestKind);
        all.forEach(member -> assertNull(member.apply(request)));
        assertNull(request.object(Pod.class));
    }

    @ParameterizedTest
    @DisplayName("A document that is not a JSON object is an error.")
    @ValueSource(strings = {"", "[]", "null", "{", "{}x", "{\"a\":1e99999999999}"})
    void unreadable(String text) {
        assertThrows(InvalidDocumentException.class, () -> request(text));
    }

    @Test
    @DisplayName("A member of another type is an error with types, never values.")
    void otherKinds() {
        Request request =
                request(
                        "{\"operation\": 7331, \"object\": \"7331\", \"kind\": {\"group\": 7331},"
                                + " \"userInfo\": {\"groups\": 7331}}");
        List<Function<Request, Object>> members =
                List.of(Request::operation, Request::object, Request::kind, Request::userInfo);
        for (Function<Request, Object> member : members) {
            String message =
                    assertThrows(InvalidDocumentException.class, () -> member.apply(request))
                            .getMessage();
            assertTrue(message.startsWith("the document's ") && !message.contains("7331"), message);
        }
    }

    @Test
    @DisplayName("The object is read as an author's type, which may lack members.")
    void typed() {
        Request request =
                request(
                        "{\"object\": {\"metadata\": {\"name\": \"n\", \"labels\": {\"a\": \"b\"}},"
                                + " \"spec\": {}}}");
        assertEquals(new Pod(new Meta("n", Map.of("a", "b"))), request.object(Pod.class));
        assertThrows(
                InvalidDocumentException.class,
                () -> request("{\"object\": {\"metadata\": []}}").object(Pod.class));
    }

    @Test
    @DisplayName("The raw text is unchanged; a printed request has no part of it.")
    void raw() {
        Request request = request("{ \"object\" : {\"secret\":1e2} }");
        assertEquals(
                "{ \"object\" : {\"secret\":1e2} }",
                new String(request.raw(), StandardCharsets.UTF_8));
        assertFalse(request.toString().contains("secret"));
    }

    @Test
    @DisplayName("A policy is notified when the gateway no longer waits.")
    void cancelled() {
        Context.CancellableContext context = Context.ROOT.withCancellation();
        Request request = new Request(ByteString.copyFromUtf8("{}"), "", context);
        CompletableFuture<Void> cancelled = request.cancelled();
        assertFalse(cancelled.isDone() || request.isCancelled());
        context.cancel(null);
        assertTrue(cancelled.isDone() && request.isCancelled() && request.cancelled().isDone());
    }
}
