package dev.admissiongateway.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import admission.worker.v1.WorkerOuterClass.Outcome;

import io.grpc.CallOptions;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.health.v1.HealthCheckRequest;
import io.grpc.health.v1.HealthCheckResponse;
import io.grpc.health.v1.HealthCheckResponse.ServingStatus;
import io.grpc.stub.ClientCalls;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Health, and the graceful stop of a worker without a lost answer. */
class StopTest {
    private static final HealthCheckRequest OVERALL = HealthCheckRequest.getDefaultInstance();

    private final CountDownLatch begun = new CountDownLatch(1);
    private final CountDownLatch gate = new CountDownLatch(1);

    private Worker worker() {
        return new Worker("w", "1")
                .register(Policy.validating("quick").judge(request -> null))
                .register(
                        Policy.validating("wait")
                                .judgeBlocking(
                                        request -> {
                                            begun.countDown();
                                            gate.await();
                                            return Answer.deny("waited");
                                        }));
    }

    private static MethodDescriptor<HealthCheckRequest, HealthCheckResponse> health(
            String name, MethodType type) {
        return ServedWorker.method(
                "grpc.health.v1.Health",
                name,
                type,
                OVERALL,
                HealthCheckResponse.getDefaultInstance());
    }

    private static ServingStatus check(ServedWorker wire, String service) {
        HealthCheckRequest called = HealthCheckRequest.newBuilder().setService(service).build();
        return ClientCalls.blockingUnaryCall(
                        wire.channel(),
                        health("Check", MethodType.UNARY),
                        ServedWorker.withDeadline(),
                        called)
                .getStatus();
    }

    private static Iterator<HealthCheckResponse> watch(ServedWorker wire, String service) {
        HealthCheckRequest called = HealthCheckRequest.newBuilder().setService(service).build();
        return ClientCalls.blockingServerStreamingCall(
                wire.channel(),
                health("Watch", MethodType.SERVER_STREAMING),
                CallOptions.DEFAULT,
                called);
    }

    @Test
    @DisplayName("Health is known for the worker and its service, and for no other.")
    void check() throws Exception {
        try (ServedWorker wire = ServedWorker.serve(worker())) {
            assertEquals(ServingStatus.SERVING, check(wire, ""));
            assertEquals(ServingStatus.SERVING, check(wire, "admission.worker.v1.Worker"));
            Status status =
                    assertThrows(StatusRuntimeException.class, () -> check(wire, "other"))
                            .getStatus();
            assertEquals(Status.Code.NOT_FOUND, status.getCode());
            assertEquals(ServingStatus.SERVICE_UNKNOWN, watch(wire, "other").next().getStatus());
        }
    }

    @Test
    @DisplayName("When the worker stops, a Watch gets NOT_SERVING and ends.")
    void watchers() throws Exception {
        try (ServedWorker wire = ServedWorker.serve(worker())) {
            List<Iterator<HealthCheckResponse>> watches =
                    List.of(watch(wire, ""), watch(wire, Methods.SERVICE));
            watches.forEach(watch -> assertEquals(ServingStatus.SERVING, watch.next().getStatus()));
            CompletableFuture<Void> closing = CompletableFuture.runAsync(wire.running()::close);
            for (Iterator<HealthCheckResponse> watch : watches) {
                assertEquals(ServingStatus.NOT_SERVING, watch.next().getStatus());
                assertTrue(!watch.hasNext());
            }
            closing.get(ServedWorker.TIMEOUT_SECONDS, TimeUnit.SECONDS);
        }
    }

    @Test
    @DisplayName(
            "A stopping worker answers new calls; a half-closed stream ends when no call is"
                    + " open.")
    void lameDuck() throws Exception {
        try (ServedWorker wire =
                ServedWorker.serve(
                        worker(),
                        Limits.defaults()
                                .withGracePeriod(
                                        Duration.ofSeconds(ServedWorker.TIMEOUT_SECONDS)))) {
            StreamClient stream = wire.stream().call(1, ServedWorker.validating("wait"));
            assertTrue(begun.await(ServedWorker.TIMEOUT_SECONDS, TimeUnit.SECONDS));
            Iterator<HealthCheckResponse> watch = watch(wire, "");
            watch.next();
            CompletableFuture<Void> closing = CompletableFuture.runAsync(wire.running()::close);
            assertEquals(ServingStatus.NOT_SERVING, watch.next().getStatus());
            stream.call(2, ServedWorker.validating("quick"));
            assertTrue(stream.only(2).hasAllow());
            assertTrue(wire.review(ServedWorker.validating("quick").build()).hasAllow());
            assertEquals(ServingStatus.NOT_SERVING, check(wire, ""));
            stream.halfClose();
            gate.countDown();
            assertEquals("waited", stream.only(1).getDeny().getMessage());
            assertEquals(Status.Code.OK, stream.end().getCode());
            closing.get(ServedWorker.TIMEOUT_SECONDS, TimeUnit.SECONDS);
        }
    }

    @Test
    @DisplayName(
            "A stream that its peer does not close ends when no call is open and no message"
                    + " arrives.")
    void idleStream() throws Exception {
        try (ServedWorker wire =
                ServedWorker.serve(
                        worker(),
                        Limits.defaults()
                                .withGracePeriod(
                                        Duration.ofSeconds(ServedWorker.TIMEOUT_SECONDS)))) {
            StreamClient stream = wire.stream().call(1, ServedWorker.validating("quick"));
            stream.only(1);
            CompletableFuture<Void> closing = CompletableFuture.runAsync(wire.running()::close);
            assertEquals(Status.Code.OK, stream.end().getCode());
            closing.get(ServedWorker.TIMEOUT_SECONDS, TimeUnit.SECONDS);
        }
    }

    @Test
    @DisplayName("An open Review is finished.")
    void openReview() throws Exception {
        try (ServedWorker wire =
                ServedWorker.serve(
                        worker(),
                        Limits.defaults()
                                .withGracePeriod(
                                        Duration.ofSeconds(ServedWorker.TIMEOUT_SECONDS)))) {
            CompletableFuture<Outcome> review =
                    CompletableFuture.supplyAsync(
                            () -> wire.review(ServedWorker.validating("wait").build()));
            assertTrue(begun.await(ServedWorker.TIMEOUT_SECONDS, TimeUnit.SECONDS));
            CompletableFuture<Void> closing = CompletableFuture.runAsync(wire.running()::close);
            while (check(wire, "") != ServingStatus.NOT_SERVING) {
                Thread.onSpinWait();
            }
            gate.countDown();
            assertEquals(
                    "waited",
                    review.get(ServedWorker.TIMEOUT_SECONDS, TimeUnit.SECONDS)
                            .getDeny()
                            .getMessage());
            closing.get(ServedWorker.TIMEOUT_SECONDS, TimeUnit.SECONDS);
        }
    }

    @Test
    @DisplayName("Calls that are open after the grace period are cancelled.")
    void graceOver() throws Exception {
        try (ServedWorker wire =
                ServedWorker.serve(
                        worker(), Limits.defaults().withGracePeriod(Duration.ofMillis(200)))) {
            StreamClient stream = wire.stream().call(1, ServedWorker.validating("wait"));
            assertTrue(begun.await(ServedWorker.TIMEOUT_SECONDS, TimeUnit.SECONDS));
            CompletableFuture.runAsync(wire.running()::close)
                    .get(ServedWorker.TIMEOUT_SECONDS, TimeUnit.SECONDS);
            assertTrue(!stream.end().isOk());
        }
    }
}
