//! The policy's span: a child of the gateway's, active while the policy runs.

use admission_worker::{Policy, ServeOptions, Worker, deny};
use opentelemetry::trace::{TraceContextExt, TraceId};
use opentelemetry::{Context, global};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use tonic::Request;

use crate::client::contract::ReviewRequest;
use crate::client::contract::outcome::Verdict;
use crate::client::{Client, calling, validating};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const STATE: &str = "a=1,b=2";

fn current_trace() -> String {
    Context::current().span().span_context().trace_id().to_string()
}

fn attribute(span: &SpanData, key: &str) -> String {
    let found = span.attributes.iter().find(|attribute| attribute.key.as_str() == key);
    found.map(|attribute| attribute.value.to_string()).unwrap_or_default()
}

/// The parent comes from the metadata on Review, and from the call on the stream, for all functions.
#[tokio::test]
async fn a_policy_has_a_span_below_the_gateways() {
    let exporter = InMemorySpanExporter::default();
    global::set_tracer_provider(SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build());
    let worker = Worker::new("traces", "1")
        .policy(Policy::validating("traced").judge(|_, _| deny(current_trace())))
        .policy(Policy::validating("traced-later").judge_async(|_, _| async {
            tokio::task::yield_now().await;
            deny(current_trace())
        }));
    let serving = worker.serve("127.0.0.1:0", ServeOptions::default()).await.unwrap();
    let client = Client::connect(serving.address()).await;

    let mut request = Request::new(ReviewRequest { call: Some(validating("traced", "{}")) });
    request.metadata_mut().insert("traceparent", PARENT.parse().unwrap());
    request.metadata_mut().insert("tracestate", STATE.parse().unwrap());
    let mut traced = vec![client.try_review(request).await.unwrap()];
    let mut call = validating("traced-later", "{}");
    (call.traceparent, call.tracestate) = (PARENT.to_owned(), STATE.to_owned());
    let mut stream = client.stream().await;
    stream.send(&[], vec![calling(1, call)]).await;
    traced.push(stream.next().await.unwrap().1);

    let trace = TraceId::from_hex("0af7651916cd43dd8448eb211c80319c").unwrap();
    for outcome in traced {
        let Some(Verdict::Deny(denied)) = outcome.verdict else { panic!() };
        assert_eq!(denied.message, trace.to_string(), "the span is active in the function");
    }
    let spans = exporter.get_finished_spans().unwrap();
    for policy in ["traced", "traced-later"] {
        let span = spans.iter().find(|span| span.name == format!("admission.worker/{policy}")).unwrap();
        assert_eq!(span.span_context.trace_id(), trace);
        assert_eq!(span.span_context.trace_state().header(), STATE);
        assert_eq!(span.parent_span_id.to_string(), "b7ad6b7169203331");
        let attributes = ["admission.policy", "admission.uid", "admission.verdict"].map(|key| attribute(span, key));
        assert_eq!(attributes, [policy, "uid-of-the-test", "deny"]);
    }
}
