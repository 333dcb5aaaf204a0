package dev.admissiongateway.worker;

import java.util.Map;

/**
 * The policy's span, where the program has OpenTelemetry's API; nothing where it has not. An SDK
 * sets up no exporter: that is the program's.
 */
interface Tracing {
    /** What is there without OpenTelemetry. */
    Tracing NONE = (policy, attributes, traceparent) -> Span.NONE;

    /** The library's presence decides, once. */
    static Tracing found() {
        try {
            Class.forName("io.opentelemetry.api.GlobalOpenTelemetry");
            return new OpenTelemetryTracing();
        } catch (ClassNotFoundException | LinkageError absent) {
            return NONE;
        }
    }

    /**
     * Begins the span of one call.
     *
     * @param policy its name
     * @param attributes that are known from the beginning
     * @param traceparent of the span's parent (W3C Trace Context); empty: there is none
     */
    Span start(String policy, Map<String, String> attributes, String traceparent);

    /** A begun span. */
    interface Span {
        /** What is there without OpenTelemetry. */
        Span NONE =
                new Span() {
                    @Override
                    public void during(Runnable work) {
                        work.run();
                    }

                    @Override
                    public void end(String verdict) {}
                };

        /** Runs something while the span is the current one. */
        void during(Runnable work);

        /** Ends it with the attribute {@code admission.verdict}. */
        void end(String verdict);
    }

    /** The {@code traceparent} of the current span; empty where there is none. */
    static String current() {
        try {
            return OpenTelemetryTracing.current();
        } catch (LinkageError absent) {
            return "";
        }
    }
}
