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
 * All threads of one served worker, none of which keeps the process alive. Calls are read and
 * written in other threads than policies run in, so that a policy which computes for long holds up
 * no stream and no health check. Queues have no bound of their own: they hold calls, which are
 * bounded ({@link Limits#inFlight}).
 */
final class Threads {
    /** Two at least: one policy that computes for long is not to hold up all others. */
    private static final int PROCESSORS = Math.max(2, Runtime.getRuntime().availableProcessors());

    /** How long a thread stays that has nothing to do. */
    private static final long IDLE_SECONDS = 60;

    private final ExecutorService calls = pool(PROCESSORS, "calls");
    private final ExecutorService plain = pool(PROCESSORS, "policy");
    private final ExecutorService blocking;
    private final ScheduledThreadPoolExecutor clock =
            new ScheduledThreadPoolExecutor(1, named("clock"));
    private EventLoopGroup loops;

    Threads(Limits limits) {
        this.blocking = pool(limits.threads(), "blocking");
        clock.setRemoveOnCancelPolicy(true); // most timeouts never come
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

    /** A thread cannot be stopped; it is interrupted, and nobody waits for what it still does. */
    void shutdown() {
        clock.shutdownNow();
        plain.shutdownNow();
        blocking.shutdownNow();
        calls.shutdown();
        if (loops != null) {
            loops.shutdownGracefully(0, 1, TimeUnit.SECONDS);
        }
    }

    /** Threads of these names, which do not keep the process alive. */
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
