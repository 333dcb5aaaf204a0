package dev.admissiongateway.worker;

import io.grpc.Attributes;
import io.grpc.ServerTransportFilter;

import java.util.concurrent.TimeUnit;

/**
 * Counts the connections and open calls of a worker, and records when the last message arrived. A
 * stopping worker uses it to detect that no client needs it.
 */
final class Traffic extends ServerTransportFilter {
    /**
     * After this time without a message, the gateway knows that the worker stops. It learns of the
     * stop from a health Watch, within milliseconds; half a second suffices on a slow machine.
     */
    static final long QUIET_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

    /** Marks a counted connection: one that ends before its handshake is not counted. */
    private static final Attributes.Key<Boolean> COUNTED = Attributes.Key.create("counted");

    private int connections;
    private int calls;
    private long latest = System.nanoTime();

    @Override
    public synchronized Attributes transportReady(Attributes attributes) {
        connections++;
        latest = System.nanoTime();
        return attributes.toBuilder().set(COUNTED, true).build();
    }

    @Override
    public synchronized void transportTerminated(Attributes attributes) {
        if (attributes != null && attributes.get(COUNTED) != null) {
            connections--;
            notifyAll();
        }
    }

    synchronized int connections() {
        return connections;
    }

    synchronized void opened() {
        calls++;
        latest = System.nanoTime();
    }

    synchronized void closed() {
        calls--;
        notifyAll();
    }

    /**
     * Waits until no client is connected, or no call is open and no message has arrived for {@link
     * #QUIET_NANOS}, or the time is over.
     */
    synchronized void awaitQuiet(long nanos) throws InterruptedException {
        long begun = System.nanoTime();
        while (connections > 0) {
            long now = System.nanoTime();
            long left = nanos - (now - begun);
            long quiet = calls > 0 ? left : QUIET_NANOS - (now - Math.max(latest, begun));
            if (left <= 0 || quiet <= 0) {
                return;
            }
            TimeUnit.NANOSECONDS.timedWait(this, Math.max(1_000_000, Math.min(left, quiet)));
        }
    }
}
