package dev.admissiongateway.worker;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/** Signals the stop of the worker to its listeners, once. */
final class StopSignal {
    private final Set<Runnable> listeners = new LinkedHashSet<>();
    private boolean begun;

    synchronized boolean isBegun() {
        return begun;
    }

    /** Calls the listener when the worker stops; at once if it is already stopping. */
    void onStop(Runnable listener) {
        synchronized (this) {
            if (!begun) {
                listeners.add(listener);
                return;
            }
        }
        listener.run();
    }

    /** Removes a listener. */
    synchronized void remove(Runnable listener) {
        listeners.remove(listener);
    }

    void begin() {
        List<Runnable> called;
        synchronized (this) {
            begun = true;
            called = List.copyOf(listeners);
            listeners.clear();
        }
        called.forEach(Runnable::run);
    }
}
