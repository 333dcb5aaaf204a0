package dev.admissiongateway.exporting;

import dev.admissiongateway.worker.Answer;
import dev.admissiongateway.worker.Policy;
import dev.admissiongateway.worker.Worker;

import io.opentelemetry.sdk.autoconfigure.AutoConfiguredOpenTelemetrySdk;

/**
 * A worker that exports its traces, to where OpenTelemetry's environment variables say. The README
 * shows it.
 */
public final class Exporting {
    private Exporting() {}

    /** Serves the policy. */
    public static void main(String[] arguments) {
        AutoConfiguredOpenTelemetrySdk.initialize();
        new Worker("exporting", "1.0.0")
                .register(Policy.validating("traced").judge(request -> Answer.allow()))
                .main(arguments);
    }
}
