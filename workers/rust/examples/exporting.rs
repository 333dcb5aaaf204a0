//! `exporting`: a worker that exports its traces, to where OpenTelemetry's environment variables say. The README shows it.

use std::process::ExitCode;

use admission_worker::{Policy, Worker, allow};
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Runtime;

fn main() -> ExitCode {
    let runtime = Runtime::new().expect("threads for the exporter");
    let exporter = runtime.block_on(async { SpanExporter::builder().with_tonic().build() });
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter.expect("an OTLP endpoint")).build();
    opentelemetry::global::set_tracer_provider(provider.clone());

    let code = Worker::new("exporting", "1.0.0").policy(Policy::validating("traced").judge(|_, _| allow())).main();
    let _ = provider.shutdown(); // exports the last spans
    code
}
