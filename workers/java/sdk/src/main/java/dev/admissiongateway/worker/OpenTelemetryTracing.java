package dev.admissiongateway.worker;

import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.trace.SpanBuilder;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.api.trace.propagation.W3CTraceContextPropagator;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import io.opentelemetry.context.propagation.TextMapGetter;

import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Spans of OpenTelemetry. Loaded only if its API is on the class path. */
final class OpenTelemetryTracing implements Tracing {
    private static final String TRACEPARENT = "traceparent";

    private static final String TRACESTATE = "tracestate";

    /** The contract has these headers only. */
    private static final TextMapGetter<Tracing.Sent> HEADERS =
            new TextMapGetter<>() {
                @Override
                @SuppressWarnings("deprecation") // abstract, so it must be implemented
                public Iterable<String> keys(Tracing.Sent sent) {
                    return List.of(TRACEPARENT, TRACESTATE);
                }

                @Override
                public String get(Tracing.Sent sent, String name) {
                    return switch (name) {
                        case TRACEPARENT -> sent.traceparent();
                        case TRACESTATE -> sent.tracestate().isEmpty() ? null : sent.tracestate();
                        default -> null;
                    };
                }
            };

    @Override
    public Tracing.Span start(String policy, Map<String, String> attributes, Tracing.Sent sent) {
        // The contract requires W3C Trace Context, independent of the program's propagators.
        Context parent =
                W3CTraceContextPropagator.getInstance()
                        .extract(Context.root(), sent, HEADERS);
        SpanBuilder builder =
                GlobalOpenTelemetry.getTracer("dev.admissiongateway.worker")
                        .spanBuilder("admission.worker/" + policy)
                        .setSpanKind(SpanKind.SERVER)
                        .setParent(parent);
        attributes.forEach(builder::setAttribute);
        return new Begun(builder.startSpan(), parent);
    }

    static String current() {
        Map<String, String> headers = new HashMap<>();
        W3CTraceContextPropagator.getInstance().inject(Context.current(), headers, Map::put);
        return headers.getOrDefault(TRACEPARENT, "");
    }

    private record Begun(io.opentelemetry.api.trace.Span span, Context parent)
            implements Tracing.Span {
        @Override
        public void during(Runnable work) {
            try (Scope scope = parent.with(span).makeCurrent()) {
                work.run();
            }
        }

        @Override
        public void end(String verdict) {
            span.setAttribute("admission.verdict", verdict);
            if (verdict.equals("failure")) {
                span.setStatus(StatusCode.ERROR);
            }
            span.end();
        }
    }
}
