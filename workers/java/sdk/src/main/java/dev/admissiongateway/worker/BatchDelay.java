package dev.admissiongateway.worker;

import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/**
 * Delays outcomes for those of other open calls, to send them in one message of the stream.
 *
 * <p>The delay ends early when no call is open. After a delay without a new outcome, the open calls
 * do not wait for a processor, and later delays do not wait for them: one slow policy must not
 * delay the others. Only the number of slow calls is stored.
 *
 * <p>Guarded by the lock of its stream.
 */
final class BatchDelay {
    /**
     * A message costs some 200 µs here and 100 µs in the gateway, whatever the number of outcomes
     * in it. Over a network a tenth of a millisecond is not noticeable.
     */
    private static final long NANOS = TimeUnit.MICROSECONDS.toNanos(100);

    private final ScheduledExecutorService clock;
    private final Runnable over;
    private Future<?> running; // null: no delay
    private int before; // known outcomes at its begin
    private int slow; // number of open calls for which the delay does not wait

    /**
     * @param over is called in the clock's thread, unless the delay ends before
     */
    BatchDelay(ScheduledExecutorService clock, Runnable over) {
        this.clock = clock;
        this.over = over;
    }

    /** Whether known outcomes must wait, with this number of open calls. Starts the delay. */
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

    /** The number of open calls has decreased to this. */
    void decreaseTo(int count) {
        slow = Math.min(slow, count);
    }

    /** The delay is over, with these numbers of known outcomes and open calls. */
    void isOver(int known, int open) {
        running = null;
        if (known <= before) {
            slow = open;
        }
    }

    /** Ends the delay. */
    void end() {
        if (running != null) {
            running.cancel(false);
            running = null;
        }
    }
}
