package dev.admissiongateway.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import admission.worker.v1.WorkerOuterClass.Outcome;
import admission.worker.v1.WorkerOuterClass.PolicyCall;
import admission.worker.v1.WorkerOuterClass.ReviewStreamRequest;
import admission.worker.v1.WorkerOuterClass.ReviewStreamRequest.RequestItem;
import admission.worker.v1.WorkerOuterClass.ReviewStreamResponse;

import com.google.protobuf.ByteString;
import com.google.protobuf.Duration;

import io.grpc.Status;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;

/** ReviewStream over a real connection: each open id gets one outcome, as soon as it is known. */
class StreamTest {
    /** Waiting calls by uid. */
    private final Map<String, CompletableFuture<Answer>> waiting = new ConcurrentHashMap<>();

    private final Map<String, Boolean> cancelled = new ConcurrentHashMap<>();
    private final AtomicInteger judged = new AtomicInteger();
    private final CountDownLatch gate = new CountDownLatch(1);
    private ServedWorker wire;
    private StreamClient stream;

    private Worker worker() {
        return new Worker("w", "1")
                .register(
                        Policy.validating("echo")
                                .judge(
                                        request -> {
                                            judged.incrementAndGet();
                                            return Answer.deny(request.document().toString());
                                        }))
                .register(
                        Policy.validating("wait")
                                .judgeLater(
                                        request -> {
                                            CompletableFuture<Answer> answer =
                                                    new CompletableFuture<>();
                                            waiting.put(request.uid(), answer);
                                            request.cancelled()
                                                    .thenRun(
                                                            () ->
                                                                    cancelled.put(
                                                                            request.uid(), true));
                                            return answer;
                                        }))
                .register(
                        Policy.validating("block")
                                .judgeBlocking(
                                        request -> {
                                            gate.await();
                                            return null;
                                        }))
                .register(
                        Policy.validating("large")
                                .judge(
                                        request -> {
                                            judged.incrementAndGet();
                                            return Answer.deny("x".repeat(1_000_000));
                                        }));
    }

    @BeforeEach
    void serve() throws Exception {
        wire = ServedWorker.serve(worker());
        stream = wire.stream();
    }

    @AfterEach
    void close() throws Exception {
        gate.countDown();
        wire.close();
    }

    private static PolicyCall.Builder echo(String document) {
        return ServedWorker.validating("echo").setDocument(ByteString.copyFromUtf8(document));
    }

    private static PolicyCall.Builder waits(String uid) {
        return ServedWorker.validating("wait").setUid(uid);
    }

    private static Duration milliseconds(int count) {
        return Duration.newBuilder().setNanos(count * 1_000_000).build();
    }

    /** Waits for a condition. */
    private static void until(BooleanSupplier condition) throws InterruptedException {
        Instant end = Instant.now().plusSeconds(ServedWorker.TIMEOUT_SECONDS);
        while (!condition.getAsBoolean()) {
            assertTrue(Instant.now().isBefore(end), "the condition is still false");
            Thread.sleep(2); // the interval of checks
        }
    }

    /** The next outcomes by id, this many. */
    private Map<Long, Outcome> outcomes(int count) throws InterruptedException {
        Map<Long, Outcome> found = new HashMap<>();
        while (found.size() < count) {
            stream.batch()
                    .getItemsList()
                    .forEach(
                            item -> assertEquals(null, found.put(item.getId(), item.getOutcome())));
        }
        return found;
    }

    @Test
    @DisplayName("An outcome does not wait for another one, not even in the same message.")
    void interleaving() throws Exception {
        stream.send(
                ReviewStreamRequest.newBuilder()
                        .addItems(StreamClient.item(1, waits("first")))
                        .addItems(StreamClient.item(2, ServedWorker.validating("block")))
                        .addItems(StreamClient.item(3, echo("{\"n\":3}")))
                        .build());
        assertEquals("{\"n\":3}", stream.only(3).getDeny().getMessage());
        stream.call(4, echo("{\"n\":4}"));
        assertEquals("{\"n\":4}", stream.only(4).getDeny().getMessage());
        until(() -> waiting.containsKey("first"));
        waiting.get("first").complete(Answer.deny("at last"));
        assertEquals("at last", stream.only(1).getDeny().getMessage());
        gate.countDown();
        assertTrue(stream.only(2).hasAllow());
    }

    @Test
    @DisplayName(
            "Calls share documents by index within their message; an unknown index is a"
                    + " failure.")
    void documents() throws Exception {
        PolicyCall.Builder shared = ServedWorker.validating("echo");
        stream.send(
                ReviewStreamRequest.newBuilder()
                        .addDocuments(ByteString.copyFromUtf8("{\"n\":0}"))
                        .addDocuments(ByteString.copyFromUtf8("{\"n\":1}"))
                        .addItems(StreamClient.item(1, shared.setDocumentIndex(1)))
                        .addItems(StreamClient.item(2, shared.setDocumentIndex(0)))
                        .addItems(StreamClient.item(3, shared.setDocumentIndex(1)))
                        .addItems(StreamClient.item(4, shared.setDocumentIndex(2)))
                        .addItems(StreamClient.item(5, shared.setDocumentIndex(-1)))
                        .build());
        Map<Long, Outcome> found = outcomes(5);
        assertEquals("{\"n\":1}", found.get(1L).getDeny().getMessage());
        assertEquals("{\"n\":0}", found.get(2L).getDeny().getMessage());
        assertEquals("{\"n\":1}", found.get(3L).getDeny().getMessage());
        assertEquals(
                "document_index is 2, and its message has 2 documents",
                found.get(4L).getFailure().getMessage());
        assertTrue(
                found.get(5L)
                        .getFailure()
                        .getMessage()
                        .startsWith("document_index is 4294967295,"));
        stream.call(6, ServedWorker.validating("echo").setDocumentIndex(0));
        assertTrue(stream.only(6).getFailure().getMessage().contains("has 0 documents"));
    }

    @Test
    @DisplayName(
            "A cancel stops the policy, and no outcome is sent; one of an unknown id is"
                    + " ignored.")
    void cancel() throws Exception {
        stream.call(1, waits("one"));
        until(() -> waiting.containsKey("one"));
        stream.cancel(1).cancel(77);
        until(() -> cancelled.containsKey("one"));
        until(() -> wire.running().inFlight() == 0);
        stream.call(2, echo("{}"));
        stream.only(2);
        assertTrue(waiting.get("one").isCancelled());
    }

    @Test
    @DisplayName("A cancelled id can be used again.")
    void usedAgain() throws Exception {
        stream.call(1, waits("one")).cancel(1).call(1, echo("{\"again\":1}"));
        assertEquals("{\"again\":1}", stream.only(1).getDeny().getMessage());
    }

    @Test
    @DisplayName("At its timeout a call is a failure, and its policy is stopped.")
    void timeouts() throws Exception {
        stream.call(1, waits("one").setTimeout(milliseconds(30)));
        String message = stream.only(1).getFailure().getMessage();
        assertEquals("policy wait: no answer within the call's timeout of 0.03 s", message);
        until(() -> wire.running().inFlight() == 0);
        for (Duration past :
                List.of(
                        Duration.getDefaultInstance(),
                        Duration.newBuilder().setSeconds(-5).build())) {
            stream.call(2, echo("{}").setTimeout(past));
            assertTrue(stream.only(2).getFailure().getMessage().contains("no answer within"));
        }
        stream.call(3, echo("{}").setTimeout(Duration.newBuilder().setSeconds(Long.MAX_VALUE)));
        assertTrue(stream.only(3).hasDeny());
    }

    @Test
    @DisplayName("A blocking function whose timeout is over never starts.")
    void tooLateToBegin() throws Exception {
        try (ServedWorker narrow = ServedWorker.serve(worker(), Limits.defaults().withThreads(1))) {
            StreamClient calls = narrow.stream();
            calls.call(1, ServedWorker.validating("block"))
                    .call(2, ServedWorker.validating("block").setTimeout(milliseconds(20)));
            assertTrue(calls.only(2).getFailure().getMessage().contains("no answer within"));
            until(() -> narrow.running().inFlight() == 1);
            gate.countDown();
            assertTrue(calls.only(1).hasAllow());
        }
    }

    @Test
    @DisplayName(
            "If a call has the id of an open call, the first is dropped and both get one"
                    + " failure.")
    void duplicates() throws Exception {
        stream.call(1, waits("one"));
        until(() -> waiting.containsKey("one"));
        stream.call(1, waits("two"));
        assertTrue(
                stream.only(1)
                        .getFailure()
                        .getMessage()
                        .contains("an open call with id 1 already"));
        until(() -> cancelled.containsKey("one"));
        stream.call(2, echo("{}"));
        stream.only(2);
        assertFalse(waiting.containsKey("two"));
    }

    @Test
    @DisplayName("An item without call or cancel is ignored.")
    void unknownItems() throws Exception {
        stream.send(
                ReviewStreamRequest.newBuilder()
                        .addItems(RequestItem.newBuilder().setId(1))
                        .build());
        stream.send(ReviewStreamRequest.getDefaultInstance());
        stream.call(2, echo("{}"));
        stream.only(2);
    }

    @Test
    @DisplayName("After the gateway half-closes, open calls are answered, and the stream ends.")
    void halfClose() throws Exception {
        stream.call(1, waits("one")).halfClose();
        until(() -> waiting.containsKey("one"));
        waiting.get("one").complete(Answer.deny("yes"));
        assertEquals("yes", stream.only(1).getDeny().getMessage());
        assertEquals(Status.Code.OK, stream.end().getCode());
        assertEquals(Status.Code.OK, wire.stream().halfClose().end().getCode());
    }

    @Test
    @DisplayName("If the stream breaks, all open calls are cancelled.")
    void broken() throws Exception {
        stream.call(1, waits("one"));
        until(() -> waiting.containsKey("one"));
        stream.cancelStream();
        until(() -> cancelled.containsKey("one") && wire.running().inFlight() == 0);
    }

    @Test
    @DisplayName("Calls above the limit are failures, and nothing stalls.")
    void inFlight() throws Exception {
        try (ServedWorker full = ServedWorker.serve(worker(), Limits.defaults().withInFlight(1))) {
            StreamClient calls = full.stream();
            calls.call(1, waits("one"));
            until(() -> waiting.containsKey("one"));
            calls.call(2, echo("{}"));
            assertTrue(
                    calls.only(2).getFailure().getMessage().contains("limit of 1 calls in flight"));
            waiting.get("one").complete(null);
            assertTrue(calls.only(1).hasAllow());
            until(() -> full.running().inFlight() == 0);
            calls.call(3, echo("{}"));
            assertTrue(calls.only(3).hasDeny());
        }
    }

    @Test
    @DisplayName(
            "The worker stops reading from a peer that does not read, and continues when it"
                    + " does.")
    void slowPeer() throws Exception {
        int most = 300; // of 1 MB each: more than the connection, the transport and the outbox hold
        // together
        int sent = 0;
        while (sent < most && isJudged(sent)) {
            stream.call(++sent, ServedWorker.validating("large"));
        }
        assertTrue(sent < most, "all calls were answered, though the client does not read");
        assertEquals(sent, outcomes(sent).size());
    }

    /**
     * Whether the policy was called this many times. Returns false after a while: then the worker
     * does not read, or the machine is slow.
     */
    private boolean isJudged(int count) throws InterruptedException {
        Instant end = Instant.now().plusSeconds(3);
        while (judged.get() < count && Instant.now().isBefore(end)) {
            Thread.sleep(1); // the interval of checks
        }
        return judged.get() >= count;
    }

    @Test
    @DisplayName("Outcomes that are known at the same time are sent together, up to a size.")
    void batches() throws Exception {
        int calls = 200;
        ReviewStreamRequest.Builder batch = ReviewStreamRequest.newBuilder();
        for (int id = 1; id <= calls; id++) {
            batch.addItems(StreamClient.item(id, waits("n" + id)));
        }
        stream.send(batch.build());
        until(() -> waiting.size() == calls);
        waiting.values().forEach(answer -> answer.complete(null));
        int messages = 0;
        for (int left = calls; left > 0; messages++) {
            ReviewStreamResponse message = stream.batch();
            left -= message.getItemsCount();
        }
        assertTrue(messages < calls, "each was sent alone");
    }

    @Test
    @DisplayName("Rejected calls of one message are answered together, before slow calls.")
    void refusals() throws Exception {
        int calls = 1000;
        ReviewStreamRequest.Builder batch =
                ReviewStreamRequest.newBuilder().addItems(StreamClient.item(0, waits("slow")));
        for (int id = 1; id <= calls; id++) {
            batch.addItems(
                    StreamClient.item(id, ServedWorker.validating("echo").setDocumentIndex(7)));
        }
        stream.send(batch.build());
        int messages = 0;
        for (int left = calls; left > 0; messages++) {
            left -= stream.batch().getItemsCount();
        }
        assertTrue(messages < 10, messages + " messages");
        until(() -> waiting.containsKey("slow"));
        waiting.get("slow").complete(null);
        assertTrue(stream.only(0).hasAllow());
    }

    @Test
    @DisplayName("Review and ReviewStream give equal outcomes.")
    void equal() throws Exception {
        List<PolicyCall.Builder> calls =
                List.of(
                        echo("{\"a\":1.0}"),
                        echo("["),
                        ServedWorker.mutating("echo"),
                        ServedWorker.validating("unheard-of"),
                        ServedWorker.validating("echo").clearDocument(),
                        ServedWorker.validating("echo")
                                .setSettings(ByteString.copyFromUtf8("{\"a\":1}")));
        for (int index = 0; index < calls.size(); index++) {
            stream.call(index, calls.get(index));
            assertEquals(wire.review(calls.get(index).build()), stream.only(index));
        }
    }
}
