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

/** A check of settings is the author's: however long it takes, it holds up nobody else. */
class SlowChecksTest {
    /** More than there are threads for calls and for policies on any machine that builds this. */
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
    @DisplayName("While settings are checked for long, calls are answered by call and by stream.")
    void slow() throws Exception {
        List<CompletableFuture<Integer>> checks = new ArrayList<>();
        try (Wire wire = Wire.serve(worker())) {
            for (int number = 0; number < CHECKS; number++) {
                String settings = "{\"text\":\"" + number + "\"}";
                checks.add(
                        CompletableFuture.supplyAsync(
                                () -> wire.validate("checked", settings).getErrorsCount(),
                                task -> Threads.named("check").newThread(task).start()));
            }
            assertTrue(begun.await(Wire.PATIENCE, TimeUnit.SECONDS));
            assertTrue(wire.review(Wire.validating("plain").build()).hasAllow());
            StreamClient stream = wire.stream();
            stream.call(1, Wire.validating("plain"));
            assertTrue(stream.only(1).hasAllow());
            done.complete(null);
            for (CompletableFuture<Integer> check : checks) {
                assertEquals(0, check.get());
            }
        }
    }
}
