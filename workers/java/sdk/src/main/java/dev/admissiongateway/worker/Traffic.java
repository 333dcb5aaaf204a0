package dev.admissiongateway.worker;

import io.grpc.Attributes;
import io.grpc.ServerTransportFilter;

import java.util.concurrent.TimeUnit;

/**
 * What goes on at a worker: connections, open calls, and when something came last. So that a worker
 * that is told to stop knows when nobody needs it any more.
 */
final class Traffic extends ServerTransportFilter {
    /**
     * Nothing has come for so long: the gateway has heard that the worker stops. It hears it by a
     * health Watch within microseconds of machine and milliseconds of network; half a second bears
     * a slow machine.
     */
    static final long QUIET_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

    /** Of a connection that has been counted: one that ends before its handshake has not. */
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
     * Waits until nobody is connected, or no call is open and none has come for a while; or the
     * time is over.
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
