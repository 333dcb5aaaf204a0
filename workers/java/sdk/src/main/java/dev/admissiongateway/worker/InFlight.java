package dev.admissiongateway.worker;

import java.util.concurrent.atomic.AtomicInteger;

/** Counts the accepted calls that have not ended, up to the limit. */
final class InFlight {
    private final int limit;
    private final AtomicInteger count = new AtomicInteger();

    InFlight(int limit) {
        this.limit = limit;
    }

    /** Accepts one call. False: the limit is reached. */
    boolean enter() {
        if (count.incrementAndGet() > limit) {
            count.decrementAndGet();
            return false;
        }
        return true;
    }

    /** Ends one call. */
    void leave() {
        count.decrementAndGet();
    }

    int count() {
        return count.get();
    }

    /** The message to the rejected client: who, limit, next step. */
    String refusal() {
        return "the worker has its limit of "
                + limit
                + " calls in flight: run more replicas, or raise --in-flight"
                + " (ADMISSION_WORKER_IN_FLIGHT)";
    }
}
