package dev.admissiongateway.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.sdk.testing.junit5.OpenTelemetryExtension;
import io.opentelemetry.sdk.trace.data.SpanData;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/** Each policy call is a span of OpenTelemetry's SDK, below the gateway's. */
class TracingTest {
    private static final String TRACE = "0af7651916cd43dd8448eb211c80319c";
    private static final String PARENT = "b7ad6b7169203331";
    private static final String TRACEPARENT = "00-" + TRACE + "-" + PARENT + "-01";

    @RegisterExtension static final OpenTelemetryExtension SDK = OpenTelemetryExtension.create();

    private static ServedWorker wire;

    /** Policies of each style that deny with the id of the span that is current in them. */
    private static Worker worker() {
        return new Worker("w", "1")
                .register(Policy.validating("plain").judge(request -> denied()))
                .register(Policy.validating("blocking").judgeBlocking(request -> denied()))
                .register(
                        Policy.validating("later")
                                .judgeLater(request -> CompletableFuture.completedFuture(denied())))
                .register(Policy.validating("allows").judge(request -> Answer.allow()))
                .register(
                        Policy.validating("throws")
                                .judge(
                                        request -> {
                                            throw new Exception("a value of the request");
                                        }));
    }

    private static Answer denied() {
        return Answer.deny(Span.current().getSpanContext().getSpanId());
    }

    @BeforeAll
    static void serve() throws Exception {
        wire = ServedWorker.serve(worker());
    }

    @AfterAll
    static void close() throws Exception {
        wire.close();
    }

    @ParameterizedTest
    @DisplayName("The parent is named by the metadata on Review, and by the call on the stream.")
    @ValueSource(strings = {"plain", "blocking", "later"})
    void parents(String policy) throws Exception {
        String reviewed =
                wire.review(ServedWorker.validating(policy).build(), TRACEPARENT)
                        .getDeny()
                        .getMessage();
        StreamClient stream =
                wire.stream()
                        .call(
                                1,
                                ServedWorker.validating(policy)
                                        .setTraceparent(TRACEPARENT)
                                        .setTracestate("a=1,b=2"));
        String streamed = stream.only(1).getDeny().getMessage();
        stream.cancelStream();
        List<SpanData> spans = SDK.getSpans();
        assertEquals(List.of(reviewed, streamed), spans.stream().map(SpanData::getSpanId).toList());
        for (SpanData span : spans) {
            assertEquals("admission.worker/" + policy, span.getName());
            assertEquals(SpanKind.SERVER, span.getKind());
            assertEquals(TRACE, span.getTraceId());
            assertEquals(PARENT, span.getParentSpanId());
            assertEquals(
                    Map.of("a", "1", "b", "2"), span.getSpanContext().getTraceState().asMap());
            assertEquals(attributes(policy, "deny"), span.getAttributes().asMap());
            assertEquals(StatusCode.UNSET, span.getStatus().getStatusCode());
        }
    }

    @Test
    @DisplayName("An allowed call's span says so.")
    void allowed() {
        wire.review(ServedWorker.validating("allows").build(), TRACEPARENT);
        SpanData span = SDK.getSpans().get(0);
        assertEquals(attributes("allows", "allow"), span.getAttributes().asMap());
    }

    @Test
    @DisplayName("A failure is an error of the span, without the exception's text.")
    void failed() {
        wire.review(ServedWorker.validating("throws").build(), TRACEPARENT);
        SpanData span = SDK.getSpans().get(0);
        assertEquals(attributes("throws", "failure"), span.getAttributes().asMap());
        assertEquals(StatusCode.ERROR, span.getStatus().getStatusCode());
        assertEquals("", span.getStatus().getDescription());
        assertEquals(List.of(), span.getEvents());
    }

    @ParameterizedTest
    @DisplayName("A traceparent that cannot be read is no parent.")
    @ValueSource(
            strings = {
                "nonsense",
                "00-00000000000000000000000000000000-" + PARENT + "-01",
                "ff-" + TRACE + "-" + PARENT + "-01"
            })
    void unreadable(String traceparent) {
        wire.review(ServedWorker.validating("allows").build(), traceparent);
        assertEquals("0000000000000000", SDK.getSpans().get(0).getParentSpanId());
    }

    private static Map<AttributeKey<?>, Object> attributes(String policy, String verdict) {
        return Map.of(
                AttributeKey.stringKey("admission.policy"), policy,
                AttributeKey.stringKey("admission.uid"), "the-uid",
                AttributeKey.stringKey("admission.verdict"), verdict);
    }
}
