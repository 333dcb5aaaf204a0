package dev.admissiongateway.samples;

import dev.admissiongateway.worker.Worker;

/**
 * Policies worth having, each in a class of its own, and the worker that serves them.
 *
 * <p>All of them are pure functions of their documents, claim what they read, and are idempotent:
 * called again about an object that they have changed, they change nothing. Those which look into
 * containers leave alone what an UPDATE did not bring: most of a Pod is immutable, and nobody who
 * sets an annotation on a Deployment expects a rollout.
 */
public final class Samples {
    private Samples() {}

    /** The worker that holds them. */
    public static Worker worker() {
        return new Worker("samples", "0.1.0")
                .register(DefaultLabels.policy())
                .register(DefaultResources.policy())
                .register(ImageRegistry.policy())
                .register(NoPrivileged.policy())
                .register(RequiredLabels.policy())
                .register(Sidecar.policy());
    }

    /** Serves them. */
    public static void main(String[] arguments) {
        worker().main(arguments);
    }
}
