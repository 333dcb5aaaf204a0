package dev.admissiongateway.worker;

import java.util.Map;

/**
 * Spans of policy calls, if OpenTelemetry's API is on the class path. The program sets up the
 * exporter.
 */
interface Tracing {
    /** Does nothing: there is no OpenTelemetry. */
    Tracing NONE = (policy, attributes, sent) -> Span.NONE;

    /** Chosen once, by the presence of the library. */
    static Tracing found() {
        try {
            Class.forName("io.opentelemetry.api.GlobalOpenTelemetry");
            return new OpenTelemetryTracing();
        } catch (ClassNotFoundException | LinkageError absent) {
            return NONE;
        }
    }

    /**
     * Starts the span of one call.
     *
     * @param policy its name
     * @param attributes that are known at the start
     * @param sent by the gateway
     */
    Span start(String policy, Map<String, String> attributes, Sent sent);

    /**
     * W3C Trace Context, of the span's parent.
     *
     * @param traceparent empty: none
     * @param tracestate empty: none
     */
    record Sent(String traceparent, String tracestate) {}

    /** A started span. */
    interface Span {
        /** Does nothing: there is no OpenTelemetry. */
        Span NONE =
                new Span() {
                    @Override
                    public void during(Runnable work) {
                        work.run();
                    }

                    @Override
                    public void end(String verdict) {}
                };

        /** Runs the task with this span as the current one. */
        void during(Runnable work);

        /** Ends it with the attribute {@code admission.verdict}. */
        void end(String verdict);
    }

    /** The {@code traceparent} of the current span; empty: none. */
    static String current() {
        try {
            return OpenTelemetryTracing.current();
        } catch (LinkageError absent) {
            return "";
        }
    }
}
