//! The span of a policy: `admission.worker/POLICY`, a child of the gateway's, active while the function runs.
//!
//! With the feature `opentelemetry` it uses OpenTelemetry's API, which does nothing until the program sets up a provider.
//! Without the feature the same functions do nothing.

#[cfg(feature = "opentelemetry")]
pub(crate) use with_opentelemetry::{Span, current_traceparent};
#[cfg(not(feature = "opentelemetry"))]
pub(crate) use without::{Span, current_traceparent};

#[cfg(feature = "opentelemetry")]
mod with_opentelemetry {
    use opentelemetry::trace::{
        SpanContext, SpanId, SpanKind, Status, TraceContextExt, TraceFlags, TraceId, TraceState, Tracer,
    };
    use opentelemetry::{Context, KeyValue, global};
    use std::str::FromStr;

    /// The span of one call. The span of a cancelled call ends when it is dropped.
    pub(crate) struct Span(Context);

    impl Span {
        pub(crate) fn begin(policy: &str, uid: &str, traceparent: &str, tracestate: &str) -> Self {
            let parent = match remote(traceparent, tracestate) {
                Some(parent) => Context::new().with_remote_span_context(parent),
                None => Context::new(),
            };
            let tracer = global::tracer("admission_worker");
            let span = tracer
                .span_builder(format!("admission.worker/{policy}"))
                .with_kind(SpanKind::Server)
                .with_attributes([
                    KeyValue::new("admission.policy", policy.to_owned()),
                    KeyValue::new("admission.uid", uid.to_owned()),
                ])
                .start_with_context(&tracer, &parent);
            Self(parent.with_span(span))
        }

        /// Runs a part of the policy's function with the span active.
        pub(crate) fn run<R>(&self, work: impl FnOnce() -> R) -> R {
            let _current = self.0.clone().attach();
            work()
        }

        pub(crate) fn end(self, verdict: &'static str) {
            let span = self.0.span();
            span.set_attribute(KeyValue::new("admission.verdict", verdict));
            if verdict == "failure" {
                span.set_status(Status::error("the policy could not judge"));
            }
            span.end();
        }
    }

    /// The `traceparent` of the active span; empty without one.
    pub(crate) fn current_traceparent() -> String {
        let context = Context::current();
        let span = context.span();
        let current = span.span_context();
        if !current.is_valid() {
            return String::new();
        }
        format!("00-{}-{}-{:02x}", current.trace_id(), current.span_id(), current.trace_flags().to_u8())
    }

    /// W3C Trace Context, section 3.2: `VERSION-TRACE_ID-PARENT_ID-FLAGS`, in lowercase hexadecimal. None for an invalid
    /// one: "if parsing fails, the vendor creates a new traceparent".
    fn remote(traceparent: &str, tracestate: &str) -> Option<SpanContext> {
        let parts: Vec<&str> = traceparent.split('-').collect();
        let is_hex = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
        // A later version may append to it, "ff" is invalid, and version 00 has exactly these parts.
        if !lengths.starts_with(&[2, 32, 16, 2]) || parts[0] == "ff" || (parts[0] == "00" && parts.len() != 4) {
            return None;
        }
        if !parts[..4].iter().all(|part| is_hex(part)) {
            return None;
        }
        let trace = TraceId::from_hex(parts[1]).ok()?;
        let span = SpanId::from_hex(parts[2]).ok()?;
        let flags = TraceFlags::new(u8::from_str_radix(parts[3], 16).ok()?);
        // "If parsing tracestate fails, it is ignored": the trace goes on without it.
        let state = TraceState::from_str(tracestate).unwrap_or_default();
        let context = SpanContext::new(trace, span, flags, true, state);
        context.is_valid().then_some(context)
    }
}

#[cfg(not(feature = "opentelemetry"))]
mod without {
    pub(crate) struct Span;

    impl Span {
        pub(crate) fn begin(_policy: &str, _uid: &str, _traceparent: &str, _tracestate: &str) -> Self {
            Self
        }

        #[allow(clippy::unused_self, reason = "as with OpenTelemetry")]
        pub(crate) fn run<R>(&self, work: impl FnOnce() -> R) -> R {
            work()
        }

        #[allow(clippy::unused_self, reason = "as with OpenTelemetry")]
        pub(crate) fn end(self, _verdict: &'static str) {}
    }

    pub(crate) fn current_traceparent() -> String {
        String::new()
    }
}
