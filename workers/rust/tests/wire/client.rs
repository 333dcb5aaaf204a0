//! A gateway's client of a worker, over a real connection.

#![allow(dead_code, missing_docs, clippy::missing_panics_doc, unreachable_pub, reason = "each test binary uses a part")]

use std::time::Duration;

use tokio::sync::mpsc;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

#[allow(clippy::all, clippy::pedantic, missing_docs, rustdoc::all, reason = "generated")]
pub mod contract {
    include!("../../src/contract/admission.worker.v1.rs");
}

use contract::{
    DescribeRequest, DescribeResponse, Outcome, Phase, PolicyCall, ReviewRequest, ReviewResponse, ReviewStreamRequest,
    ReviewStreamResponse, ValidateSettingsRequest, ValidateSettingsResponse,
    policy_call::DocumentSource,
    review_stream_request::{Cancel, RequestItem, request_item::Item},
    review_stream_response::ResponseItem,
};

/// The time after which a test fails: a slow, busy machine needs seconds.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The result of a future; the test fails if it takes too long.
pub async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("it takes too long")
}

/// Polls a condition until it holds.
pub async fn until<W: Future<Output = bool>>(mut holds: impl FnMut() -> W) {
    soon(async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

#[derive(Clone)]
pub struct Client(pub Channel);

#[derive(Clone, PartialEq, prost::Message)]
pub struct HealthCheckRequest {
    #[prost(string, tag = "1")]
    pub service: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct HealthCheckResponse {
    #[prost(int32, tag = "1")]
    pub status: i32,
}

pub const SERVING: i32 = 1;
pub const NOT_SERVING: i32 = 2;
pub const SERVICE_UNKNOWN: i32 = 3;

/// A message that no type can be decoded from.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Unreadable {
    #[prost(uint32, tag = "1")]
    pub number_where_a_message_is: u32,
}

impl Client {
    pub async fn connect(address: &str) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address");
        Self(soon(endpoint.connect()).await.expect("it connects"))
    }

    pub async fn unary<I, O>(&self, path: &'static str, message: Request<I>) -> Result<O, Status>
    where
        I: prost::Message + Send + Sync + 'static,
        O: prost::Message + Default + Send + Sync + 'static,
    {
        let mut grpc = Grpc::new(self.0.clone()).max_decoding_message_size(usize::MAX);
        grpc.ready().await.expect("it is connected");
        let path = http::uri::PathAndQuery::from_static(path);
        let call = grpc.unary(message, path, ProstCodec::default());
        soon(call).await.map(tonic::Response::into_inner)
    }

    pub async fn describe(&self) -> DescribeResponse {
        let request = DescribeRequest { gateway_version: "0.1.0".to_owned() };
        self.unary("/admission.worker.v1.Worker/Describe", Request::new(request)).await.expect("it describes itself")
    }

    pub async fn validate(&self, policy: &str, settings: &str) -> ValidateSettingsResponse {
        let request = ValidateSettingsRequest { policy: policy.to_owned(), settings: settings.to_owned().into() };
        let path = "/admission.worker.v1.Worker/ValidateSettings";
        self.unary(path, Request::new(request)).await.expect("settings are validated")
    }

    pub async fn try_review(&self, request: Request<ReviewRequest>) -> Result<Outcome, Status> {
        let response: ReviewResponse = self.unary("/admission.worker.v1.Worker/Review", request).await?;
        Ok(response.outcome.expect("an outcome"))
    }

    pub async fn review(&self, policy_call: PolicyCall) -> Outcome {
        self.try_review(Request::new(ReviewRequest { call: Some(policy_call) })).await.expect("an answer")
    }

    pub async fn health(&self, service: &str) -> Result<i32, Status> {
        let request = HealthCheckRequest { service: service.to_owned() };
        let response: HealthCheckResponse = self.unary("/grpc.health.v1.Health/Check", Request::new(request)).await?;
        Ok(response.status)
    }

    pub async fn watch(&self, service: &str) -> Streaming<HealthCheckResponse> {
        let mut grpc = Grpc::new(self.0.clone());
        grpc.ready().await.expect("it is connected");
        let request = Request::new(HealthCheckRequest { service: service.to_owned() });
        let path = http::uri::PathAndQuery::from_static("/grpc.health.v1.Health/Watch");
        let call = grpc.server_streaming(request, path, ProstCodec::default());
        soon(call).await.expect("it watches").into_inner()
    }

    pub async fn stream(&self) -> Stream {
        let (sender, receiver) = mpsc::channel(1024);
        let mut grpc = Grpc::new(self.0.clone()).max_decoding_message_size(usize::MAX);
        grpc.ready().await.expect("it is connected");
        let path = http::uri::PathAndQuery::from_static("/admission.worker.v1.Worker/ReviewStream");
        let outgoing = Request::new(Messages(receiver));
        let call = grpc.streaming(outgoing, path, ProstCodec::<ReviewStreamRequest, _>::default());
        let incoming = soon(call).await.expect("the stream opens").into_inner();
        Stream { sender: Some(sender), incoming, known: Vec::new() }
    }
}

/// An open `ReviewStream`.
pub struct Stream {
    pub sender: Option<mpsc::Sender<ReviewStreamRequest>>,
    pub incoming: Streaming<ReviewStreamResponse>,
    known: Vec<ResponseItem>,
}

impl Stream {
    pub async fn send(&self, documents: &[&str], items: Vec<RequestItem>) {
        let documents = documents.iter().map(|text| (*text).to_owned().into()).collect();
        let sender = self.sender.as_ref().expect("it is not half-closed");
        soon(sender.send(ReviewStreamRequest { documents, items })).await.expect("the stream is open");
    }

    pub fn half_close(&mut self) {
        self.sender = None;
    }

    /// The next outcome; None: the stream has ended.
    pub async fn next(&mut self) -> Option<(u64, Outcome)> {
        while self.known.is_empty() {
            let batch = soon(self.incoming.message()).await.expect("the stream is whole")?;
            assert!(!batch.items.is_empty(), "a batch holds at least one item");
            self.known = batch.items;
        }
        let item = self.known.remove(0);
        Some((item.id, item.outcome.expect("an outcome")))
    }
}

struct Messages(mpsc::Receiver<ReviewStreamRequest>);

impl tokio_stream::Stream for Messages {
    type Item = ReviewStreamRequest;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<ReviewStreamRequest>> {
        self.0.poll_recv(context)
    }
}

/// A call with a document of its own.
pub fn policy_call(policy: &str, phase: Phase, settings: &str, document: &str) -> PolicyCall {
    PolicyCall {
        policy: policy.to_owned(),
        phase: phase as i32,
        settings: settings.to_owned().into(),
        document_source: Some(DocumentSource::Document(document.to_owned().into())),
        uid: "uid-of-the-test".to_owned(),
        ..PolicyCall::default()
    }
}

pub fn validating(policy: &str, settings: &str) -> PolicyCall {
    policy_call(policy, Phase::Validating, settings, "{}")
}

pub fn mutating(policy: &str, settings: &str) -> PolicyCall {
    policy_call(policy, Phase::Mutating, settings, r#"{"object":{"metadata":{"name":"n"}}}"#)
}

pub fn calling(id: u64, policy_call: PolicyCall) -> RequestItem {
    RequestItem { id, item: Some(Item::Call(policy_call)) }
}

pub fn cancelling(id: u64) -> RequestItem {
    RequestItem { id, item: Some(Item::Cancel(Cancel {})) }
}

/// The message of a failure.
pub fn failure(outcome: &Outcome) -> String {
    match &outcome.verdict {
        Some(contract::outcome::Verdict::Failure(failure)) => failure.message.clone(),
        other => panic!("no failure but {other:?}"),
    }
}

/// Whether it allows, without a change.
pub fn is_plain_allow(outcome: &Outcome) -> bool {
    matches!(&outcome.verdict, Some(contract::outcome::Verdict::Allow(contract::Allow { change: None })))
}
