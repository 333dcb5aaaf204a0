package dev.admissiongateway.worker;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/** That the worker is told to stop: once, to all who need to know. */
final class Stopping {
    private final Set<Runnable> listeners = new LinkedHashSet<>();
    private boolean begun;

    synchronized boolean isBegun() {
        return begun;
    }

    /** Calls the listener when the worker is told to stop; at once if it was. */
    void tell(Runnable listener) {
        synchronized (this) {
            if (!begun) {
                listeners.add(listener);
                return;
            }
        }
        listener.run();
    }

    /** The listener has gone. */
    synchronized void forget(Runnable listener) {
        listeners.remove(listener);
    }

    void begin() {
        List<Runnable> told;
        synchronized (this) {
            begun = true;
            told = List.copyOf(listeners);
            listeners.clear();
        }
        told.forEach(Runnable::run);
    }
}
