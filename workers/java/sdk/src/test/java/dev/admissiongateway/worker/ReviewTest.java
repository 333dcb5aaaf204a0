package dev.admissiongateway.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import admission.worker.v1.WorkerOuterClass.FailureReason;
import admission.worker.v1.WorkerOuterClass.Outcome;
import admission.worker.v1.WorkerOuterClass.Phase;
import admission.worker.v1.WorkerOuterClass.PolicyCall;

import com.google.protobuf.ByteString;

import io.grpc.CallOptions;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ClientCalls;
import io.opentelemetry.api.trace.Span;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Review over a real connection: every answer, and every failure. */
class ReviewTest {
    private static final CompletableFuture<Void> INTERRUPTED = new CompletableFuture<>();
    private static final CompletableFuture<Void> NOTIFIED = new CompletableFuture<>();

    record Text(String text) {}

    private static ServedWorker wire;

    private static Worker worker() {
        return new Worker("w", "1")
                .register(
                        Policy.mutating("patch")
                                .judge(request -> Answer.patch(new Patch().add("/a", 1))))
                .register(Policy.mutating("merge").judge(request -> Answer.merge(Map.of("a", 1))))
                .register(
                        Policy.mutating("mutated")
                                .judge(request -> Answer.mutated(request.object())))
                .register(
                        Policy.validating("allow")
                                .version("7")
                                .judge(request -> Answer.allow().withWarnings("w")))
                .register(Policy.validating("nothing").judge(request -> null))
                .register(Policy.validating("deny").judge(request -> Answer.deny("no")))
                .register(Policy.validating("fail").judge(request -> Answer.fail("no inventory")))
                .register(
                        Policy.validating("misuse").judge(request -> Answer.merge(Map.of("a", 1))))
                .register(
                        Policy.validating("settings")
                                .settings(Text.class)
                                .judge((request, settings) -> Answer.deny(settings.text())))
                .register(
                        Policy.validating("checked")
                                .judge(
                                        request -> {
                                            throw new Exception("secret");
                                        }))
                .register(
                        Policy.validating("error")
                                .judge(
                                        request -> {
                                            throw new AssertionError("secret");
                                        }))
                .register(Policy.validating("endless").judge(ReviewTest::endless))
                .register(
                        Policy.validating("memory")
                                .judge(
                                        request ->
                                                Answer.deny(
                                                        new String(new char[Integer.MAX_VALUE]))))
                .register(
                        Policy.validating("flood").judge(request -> Answer.deny("x".repeat(5_000))))
                .register(
                        Policy.validating("later")
                                .judgeLater(
                                        request ->
                                                CompletableFuture.supplyAsync(
                                                        () -> Answer.deny("later"))))
                .register(
                        Policy.validating("later-nothing")
                                .judgeLater(request -> CompletableFuture.completedFuture(null)))
                .register(Policy.validating("no-stage").judgeLater(request -> null))
                .register(
                        Policy.validating("later-throws")
                                .judgeLater(
                                        request ->
                                                CompletableFuture.failedFuture(
                                                        new IllegalStateException("secret"))))
                .register(
                        Policy.validating("cancels-itself")
                                .judgeLater(
                                        request -> {
                                            CompletableFuture<Answer> cancelled =
                                                    new CompletableFuture<>();
                                            cancelled.cancel(true);
                                            return cancelled;
                                        }))
                .register(
                        Policy.validating("never")
                                .judgeLater(
                                        request -> {
                                            request.cancelled()
                                                    .thenRun(() -> NOTIFIED.complete(null));
                                            return new CompletableFuture<Answer>();
                                        }))
                .register(
                        Policy.validating("blocking")
                                .judgeBlocking(
                                        request -> Answer.deny(Thread.currentThread().getName())))
                .register(
                        Policy.validating("blocked")
                                .judgeBlocking(
                                        request -> {
                                            try {
                                                new CountDownLatch(1).await();
                                            } catch (InterruptedException interrupted) {
                                                INTERRUPTED.complete(null);
                                                throw interrupted;
                                            }
                                            return null;
                                        }));
    }

    private static Answer endless(Request request) {
        return endless(request);
    }

    @BeforeAll
    static void serve() throws Exception {
        wire = ServedWorker.serve(worker(), Limits.defaults().withMessageBytes(4096));
    }

    @AfterAll
    static void close() throws Exception {
        wire.close();
    }

    @Test
    @DisplayName("Every answer is encoded as in the contract.")
    void arms() {
        assertEquals(
                "[{\"op\":\"add\",\"path\":\"/a\",\"value\":1}]",
                wire.review(ServedWorker.mutating("patch").build())
                        .getAllow()
                        .getJsonPatch()
                        .toStringUtf8());
        assertEquals(
                "{\"a\":1}",
                wire.review(ServedWorker.mutating("merge").build())
                        .getAllow()
                        .getMergePatch()
                        .toStringUtf8());
        assertEquals(
                "no", wire.review(ServedWorker.validating("deny").build()).getDeny().getMessage());
        assertEquals(403, wire.review(ServedWorker.validating("deny").build()).getDeny().getCode());
        assertEquals(
                "no inventory",
                wire.review(ServedWorker.validating("fail").build()).getFailure().getMessage());
        assertEquals(
                Outcome.newBuilder()
                        .setAllow(
                                wire.review(ServedWorker.validating("nothing").build()).getAllow())
                        .setVersion("1")
                        .build(),
                wire.review(ServedWorker.validating("nothing").build()));
        assertEquals(
                "later",
                wire.review(ServedWorker.validating("later").build()).getDeny().getMessage());
        assertTrue(wire.review(ServedWorker.validating("later-nothing").build()).hasAllow());
        assertTrue(
                wire.review(ServedWorker.validating("blocking").build())
                        .getDeny()
                        .getMessage()
                        .startsWith("blocking"));
    }

    @Test
    @DisplayName("In a returned object numbers keep their text.")
    void numbers() {
        String object = "{\"a\":1.0,\"b\":9007199254740993,\"c\":1e400,\"d\":[-0.0,1E2]}";
        ByteString document = ByteString.copyFromUtf8("{\"object\":" + object + "}");
        Outcome outcome =
                wire.review(ServedWorker.mutating("mutated").setDocument(document).build());
        assertEquals(object, outcome.getAllow().getObject().toStringUtf8());
    }

    @Test
    @DisplayName("An outcome has its policy's version, else the worker's.")
    void versions() {
        assertEquals("7", wire.review(ServedWorker.validating("allow").build()).getVersion());
        assertEquals("1", wire.review(ServedWorker.validating("deny").build()).getVersion());
        assertEquals("1", wire.review(ServedWorker.validating("checked").build()).getVersion());
    }

    @ParameterizedTest
    @DisplayName(
            "An exception of a policy is a failure with the policy and the type, and without"
                    + " the text.")
    @CsvSource({
        "checked,Exception",
        "error,AssertionError",
        "endless,StackOverflowError",
        "memory,OutOfMemoryError",
        "later-throws,IllegalStateException",
        "cancels-itself,CancellationException"
    })
    void thrown(String policy, String type) {
        Outcome outcome = wire.review(ServedWorker.validating(policy).build());
        assertEquals(
                "policy " + policy + " threw " + type + "; see the worker's log",
                outcome.getFailure().getMessage());
    }

    @Test
    @DisplayName("A change in the validating phase is a failure.")
    void misuse() {
        String message =
                wire.review(ServedWorker.validating("misuse").build()).getFailure().getMessage();
        assertTrue(message.contains("only a mutating policy may change the object"), message);
    }

    @Test
    @DisplayName("judgeLater requires a stage.")
    void noStage() {
        String message =
                wire.review(ServedWorker.validating("no-stage").build()).getFailure().getMessage();
        assertTrue(message.contains("must be a CompletionStage"), message);
    }

    @Test
    @DisplayName("An answer larger than a message is a failure that names its size and the limit.")
    void tooLarge() {
        String message =
                wire.review(ServedWorker.validating("flood").build()).getFailure().getMessage();
        assertTrue(
                message.matches(
                        "policy flood: the answer has 50\\d\\d bytes, at most 4032 fit a"
                                + " message.*"),
                message);
    }

    @Test
    @DisplayName(
            "A policy that the worker does not have, or not for the phase, is an unknown"
                    + " policy.")
    void unknown() {
        for (PolicyCall.Builder call :
                List.of(
                        ServedWorker.validating("unheard-of"),
                        ServedWorker.mutating("deny"),
                        ServedWorker.call("deny", Phase.PHASE_UNSPECIFIED),
                        ServedWorker.validating("deny").setPhaseValue(99))) {
            Outcome outcome = wire.review(call.build());
            assertEquals(
                    FailureReason.FAILURE_REASON_UNKNOWN_POLICY, outcome.getFailure().getReason());
        }
    }

    @ParameterizedTest
    @DisplayName("Invalid settings are a failure with that reason.")
    @ValueSource(strings = {"", "[]", "{\"text\":1}", "{\"other\":1}", "{"})
    void invalidSettings(String settings) {
        PolicyCall call =
                ServedWorker.validating("settings")
                        .setSettings(ByteString.copyFromUtf8(settings))
                        .build();
        Outcome outcome = wire.review(call);
        assertEquals(
                FailureReason.FAILURE_REASON_INVALID_SETTINGS, outcome.getFailure().getReason());
        assertFalse(wire.validate("settings", settings).getErrorsList().isEmpty());
    }

    @Test
    @DisplayName("ValidateSettings reports every error, and an unknown policy.")
    void validation() {
        assertEquals("/text", wire.validate("settings", "{\"text\":1}").getErrors(0).getPointer());
        assertEquals(
                "the worker holds no policy \"x\"",
                wire.validate("x", "{}").getErrors(0).getMessage());
        assertEquals(0, wire.validate("settings", "{\"text\":\"a\"}").getErrorsCount());
    }

    @ParameterizedTest
    @DisplayName("A document that is not a JSON object is a failure.")
    @ValueSource(strings = {"", "[]", "{", "{\"a\":\"\\ud800\"", "\u0000"})
    void unreadableDocument(String text) {
        Outcome outcome =
                wire.review(
                        ServedWorker.validating("deny")
                                .setDocument(ByteString.copyFromUtf8(text))
                                .build());
        assertTrue(
                outcome.getFailure().getMessage().contains("the document is not one JSON object"));
    }

    @Test
    @DisplayName("A call without a document is a failure, and so is an index on Review.")
    void noDocument() {
        for (PolicyCall.Builder call :
                List.of(
                        ServedWorker.validating("deny").clearDocument(),
                        ServedWorker.validating("deny").setDocumentIndex(0))) {
            assertTrue(
                    wire.review(call.build())
                            .getFailure()
                            .getMessage()
                            .contains("without a document"));
        }
    }

    @Test
    @DisplayName("At the deadline a stage is cancelled and a blocking function is interrupted.")
    void deadlines() throws Exception {
        assertStoppedByDeadline("never", NOTIFIED);
        assertStoppedByDeadline("blocked", INTERRUPTED);
    }

    private void assertStoppedByDeadline(String policy, CompletableFuture<Void> stopped)
            throws Exception {
        PolicyCall call = ServedWorker.validating(policy).build();
        // On a cold or busy machine the function may not start before the deadline: then the
        // deadline is longer.
        for (long time = 200;
                !stopped.isDone() && time < ServedWorker.TIMEOUT_SECONDS * 1000;
                time *= 2) {
            CallOptions options =
                    CallOptions.DEFAULT.withDeadlineAfter(time, TimeUnit.MILLISECONDS);
            Status status =
                    assertThrows(StatusRuntimeException.class, () -> wire.review(call, options))
                            .getStatus();
            assertEquals(Status.Code.DEADLINE_EXCEEDED, status.getCode());
        }
        stopped.get(ServedWorker.TIMEOUT_SECONDS, TimeUnit.SECONDS);
    }

    @Test
    @DisplayName("Calls above the limit are rejected; an ended call makes room for the next.")
    void inFlight() throws Exception {
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch end = new CountDownLatch(1);
        Worker slow =
                new Worker("w", "1")
                        .register(
                                Policy.validating("wait")
                                        .judgeBlocking(
                                                request -> {
                                                    begun.countDown();
                                                    end.await();
                                                    return null;
                                                }))
                        .register(Policy.validating("quick").judge(request -> null));
        try (ServedWorker full = ServedWorker.serve(slow, Limits.defaults().withInFlight(1))) {
            CompletableFuture<Outcome> first =
                    CompletableFuture.supplyAsync(
                            () -> full.review(ServedWorker.validating("wait").build()));
            assertTrue(begun.await(ServedWorker.TIMEOUT_SECONDS, TimeUnit.SECONDS));
            PolicyCall call = ServedWorker.validating("quick").build();
            Status status =
                    assertThrows(StatusRuntimeException.class, () -> full.review(call)).getStatus();
            assertEquals(Status.Code.RESOURCE_EXHAUSTED, status.getCode());
            assertTrue(status.getDescription().contains("--in-flight"), status.getDescription());
            end.countDown();
            assertTrue(first.get(ServedWorker.TIMEOUT_SECONDS, TimeUnit.SECONDS).hasAllow());
            assertTrue(full.review(call).hasAllow());
        }
    }

    @Test
    @DisplayName("An unreadable message is INVALID_ARGUMENT, for each RPC.")
    void unreadableMessage() {
        MethodDescriptor.Marshaller<byte[]> bytes =
                new MethodDescriptor.Marshaller<>() {
                    @Override
                    public InputStream stream(byte[] value) {
                        return new ByteArrayInputStream(value);
                    }

                    @Override
                    public byte[] parse(InputStream stream) {
                        return new byte[0];
                    }
                };
        for (String name : List.of("Describe", "ValidateSettings", "Review", "ReviewStream")) {
            MethodDescriptor<byte[], byte[]> method =
                    MethodDescriptor.<byte[], byte[]>newBuilder()
                            .setType(MethodDescriptor.MethodType.UNARY)
                            .setFullMethodName(Methods.SERVICE + "/" + name)
                            .setRequestMarshaller(bytes)
                            .setResponseMarshaller(bytes)
                            .build();
            byte[] nonsense = {(byte) 0xff, (byte) 0xff};
            Status status =
                    assertThrows(
                                    StatusRuntimeException.class,
                                    () ->
                                            ClientCalls.blockingUnaryCall(
                                                    wire.channel(),
                                                    method,
                                                    ServedWorker.withDeadline(),
                                                    nonsense))
                            .getStatus();
            assertEquals(Status.Code.INVALID_ARGUMENT, status.getCode(), name);
        }
    }

    @Test
    @DisplayName("The trace context of the call is current while the function runs.")
    void traces() throws Exception {
        String traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        Worker traced =
                new Worker("w", "1")
                        .register(
                                Policy.validating("trace")
                                        .judge(request -> Answer.deny(Tracing.current() + state())));
        try (ServedWorker over = ServedWorker.serve(traced)) {
            PolicyCall call = ServedWorker.validating("trace").build();
            assertEquals(traceparent + "1", over.review(call, traceparent).getDeny().getMessage());
            assertEquals("", over.review(call).getDeny().getMessage());
            assertEquals("", over.review(call, "nonsense").getDeny().getMessage());
            StreamClient stream =
                    over.stream()
                            .call(
                                    1,
                                    ServedWorker.validating("trace")
                                            .setTraceparent(traceparent)
                                            .setTracestate("a=1,b=2"));
            assertEquals(traceparent + "1", stream.only(1).getDeny().getMessage());
            stream.cancelStream();
        }
    }

    /** The value of "a" in the current tracestate. */
    private static String state() {
        String found = Span.current().getSpanContext().getTraceState().get("a");
        return found == null ? "" : found;
    }
}
