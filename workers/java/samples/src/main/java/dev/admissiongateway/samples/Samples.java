package dev.admissiongateway.samples;

import dev.admissiongateway.worker.Worker;

/**
 * Useful policies, each in its own class, and the worker that serves them.
 *
 * <p>They are pure functions of their documents, claim what they read, and are idempotent: called
 * again with an object that they have changed, they change nothing. Policies for containers ignore
 * what an UPDATE does not change: most of a Pod is immutable, and an annotation on a Deployment
 * must not cause a rollout.
 */
public final class Samples {
    private Samples() {}

    /** The worker. */
    public static Worker worker() {
        return new Worker("samples", "0.1.0")
                .register(DefaultLabels.policy())
                .register(DefaultResources.policy())
                .register(ImageRegistry.policy())
                .register(NoPrivileged.policy())
                .register(RequiredLabels.policy())
                .register(Sidecar.policy());
    }

    /** Serves the policies. */
    public static void main(String[] arguments) {
        worker().main(arguments);
    }
}
