package dev.admissiongateway.worker;

import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/**
 * The moment that an outcome waits for others that are being worked on, so that they travel in one
 * message of their stream.
 *
 * <p>It ends when nothing is open any more, or when it is over. Where a moment brought nothing, what
 * is open waits for something else than a processor, and nobody waits for it again: one slow policy
 * must not delay whatever is called beside it. Which ones are slow is not kept, but how many.
 *
 * <p>Guarded by its stream's lock.
 */
final class Moment {
    /**
     * A message costs some 200 µs here and 100 µs in the gateway, which it shares among all that is
     * in it; whoever is called over a network does not see a tenth of a millisecond.
     */
    private static final long NANOS = TimeUnit.MICROSECONDS.toNanos(100);

    private final ScheduledExecutorService clock;
    private final Runnable over;
    private Future<?> running; // null: nothing is waited for
    private int before; // outcomes that were known when it began
    private int slow; // so many of those that are open are not waited for

    /**
     * @param over is called in the clock's thread when a moment has not ended before
     */
    Moment(ScheduledExecutorService clock, Runnable over) {
        this.clock = clock;
        this.over = over;
    }

    /** Whether what is known waits, with so many open; begins the moment if none is running. */
    boolean holds(int known, int open) {
        if (known == 0 || open <= slow) {
            end();
            return false;
        }
        if (running == null) {
            before = known;
            running = clock.schedule(over, NANOS, TimeUnit.NANOSECONDS);
        }
        return true;
    }

    /** So many are open now, fewer than before. */
    void open(int count) {
        slow = Math.min(slow, count);
    }

    /** It is over, and this is what has become known. */
    void isOver(int known, int open) {
        running = null;
        if (known <= before) {
            slow = open;
        }
    }

    /** Nothing is waited for any more. */
    void end() {
        if (running != null) {
            running.cancel(false);
            running = null;
        }
    }
}
