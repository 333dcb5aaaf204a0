package dev.admissiongateway.worker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** A slow check of settings, which is the author's code, delays no calls. */
class SlowChecksTest {
    /** More than the threads for calls and policies on any build machine. */
    private static final int CHECKS = 24;

    record Text(String text) {}

    private final CountDownLatch begun = new CountDownLatch(CHECKS);
    private final CompletableFuture<Void> done = new CompletableFuture<>();

    private Worker worker() {
        return new Worker("w", "1")
                .register(
                        Policy.validating("checked")
                                .settings(
                                        Text.class,
                                        settings -> {
                                            begun.countDown();
                                            done.join();
                                            return List.of();
                                        })
                                .judge((request, settings) -> null))
                .register(Policy.validating("plain").judge(request -> null));
    }

    @Test
    @DisplayName("During slow checks of settings, Review and ReviewStream answer calls.")
    void slow() throws Exception {
        List<CompletableFuture<Integer>> checks = new ArrayList<>();
        try (ServedWorker wire = ServedWorker.serve(worker())) {
            for (int number = 0; number < CHECKS; number++) {
                String settings = "{\"text\":\"" + number + "\"}";
                checks.add(
                        CompletableFuture.supplyAsync(
                                () -> wire.validate("checked", settings).getErrorsCount(),
                                task -> Threads.named("check").newThread(task).start()));
            }
            assertTrue(begun.await(ServedWorker.TIMEOUT_SECONDS, TimeUnit.SECONDS));
            assertTrue(wire.review(ServedWorker.validating("plain").build()).hasAllow());
            StreamClient stream = wire.stream();
            stream.call(1, ServedWorker.validating("plain"));
            assertTrue(stream.only(1).hasAllow());
            done.complete(null);
            for (CompletableFuture<Integer> check : checks) {
                assertEquals(0, check.get());
            }
        }
    }
}
