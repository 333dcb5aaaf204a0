package dev.admissiongateway.worker;

import java.util.concurrent.atomic.AtomicInteger;

/** Counts the calls that are being worked on, and says whether one more may be taken. */
final class InFlight {
    private final int limit;
    private final AtomicInteger count = new AtomicInteger();

    InFlight(int limit) {
        this.limit = limit;
    }

    /** Takes one call. False: there is no room, and nothing was taken. */
    boolean enter() {
        if (count.incrementAndGet() > limit) {
            count.decrementAndGet();
            return false;
        }
        return true;
    }

    /** One call is worked off. */
    void leave() {
        count.decrementAndGet();
    }

    int count() {
        return count.get();
    }

    /** The sentence for whoever is refused: who, limit, next step. */
    String refusal() {
        return "the worker has its limit of "
                + limit
                + " calls in flight: run more replicas, or raise --in-flight"
                + " (ADMISSION_WORKER_IN_FLIGHT)";
    }
}
