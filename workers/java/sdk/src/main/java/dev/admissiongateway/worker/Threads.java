package dev.admissiongateway.worker;

import io.grpc.netty.shaded.io.netty.channel.EventLoopGroup;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;

/**
 * The threads of one served worker, all daemons. Messages are read and written in other threads
 * than those of policies, so that a policy that computes for long delays no stream and no health
 * check. The queues are limited by the number of calls ({@link Limits#inFlight}).
 */
final class Threads {
    /** At least two: one policy that computes for long must not delay all others. */
    private static final int PROCESSORS = Math.max(2, Runtime.getRuntime().availableProcessors());

    /** How long an idle thread stays. */
    private static final long IDLE_SECONDS = 60;

    private final ExecutorService calls = pool(PROCESSORS, "calls");
    private final ExecutorService plain = pool(PROCESSORS, "policy");
    private final ExecutorService blocking;
    private final ScheduledThreadPoolExecutor clock =
            new ScheduledThreadPoolExecutor(1, named("clock"));
    private EventLoopGroup loops;

    Threads(Limits limits) {
        this.blocking = pool(limits.threads(), "blocking");
        clock.setRemoveOnCancelPolicy(true); // most timeouts are cancelled
    }

    ExecutorService calls() {
        return calls;
    }

    ExecutorService plain() {
        return plain;
    }

    ExecutorService blocking() {
        return blocking;
    }

    ScheduledExecutorService clock() {
        return clock;
    }

    EventLoopGroup loops(Supplier<EventLoopGroup> made) {
        loops = made.get();
        return loops;
    }

    /** Interrupts the threads, which cannot be stopped, and does not wait for them. */
    void shutdown() {
        clock.shutdownNow();
        plain.shutdownNow();
        blocking.shutdownNow();
        calls.shutdown();
        if (loops != null) {
            loops.shutdownGracefully(0, 1, TimeUnit.SECONDS);
        }
    }

    /** A factory of daemon threads with this name. */
    static ThreadFactory named(String name) {
        AtomicInteger number = new AtomicInteger();
        return work -> {
            Thread thread = Executors.defaultThreadFactory().newThread(work);
            thread.setName(name + "-" + number.incrementAndGet());
            thread.setDaemon(true);
            return thread;
        };
    }

    private static ExecutorService pool(int size, String name) {
        ThreadPoolExecutor made =
                new ThreadPoolExecutor(
                        size,
                        size,
                        IDLE_SECONDS,
                        TimeUnit.SECONDS,
                        new LinkedBlockingQueue<>(),
                        named(name));
        made.allowCoreThreadTimeOut(true);
        return made;
    }
}
