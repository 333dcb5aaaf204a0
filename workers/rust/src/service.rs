//! The contract's four RPCs and those of health, for one worker.
//!
//! A message that cannot be decoded gets INVALID_ARGUMENT; a message that is too large, or a call beyond the limit,
//! RESOURCE_EXHAUSTED; a call beyond its deadline DEADLINE_EXCEEDED. Every other call gets an answer. A gRPC status is a
//! failure of the call and never a verdict.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use hyper::body::Incoming;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tonic::body::Body;
use tonic::server::{Grpc, ServerStreamingService, StreamingService, UnaryService};
use tonic::{Code, Request, Response, Status, Streaming};

use crate::codec::Messages;
use crate::contract::policy_call::DocumentSource;
use crate::contract::{
    DescribeRequest, DescribeResponse, NAME, ReviewRequest, ReviewResponse, ReviewStreamRequest, ReviewStreamResponse,
    SettingsError, ValidateSettingsRequest, ValidateSettingsResponse,
};
use crate::deadlines::timeout_of;
use crate::health;
use crate::judging::{Begun, Judge, Policies};
use crate::limits::{InFlight, Limits};
use crate::stages::{Activity, Stages};
use crate::stream::ReviewStream;

/// Serves the RPCs of all connections.
pub(crate) struct Service {
    pub(crate) description: DescribeResponse,
    pub(crate) policies: Policies,
    pub(crate) judge: Arc<Judge>,
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) limits: Limits,
    pub(crate) stages: Stages,
    pub(crate) activity: Arc<Activity>,
}

#[allow(clippy::unnecessary_wraps, reason = "tonic's signature of an RPC")]
impl Service {
    /// The response of `Describe`, made once: it must be cheap, and must not fail while the worker can judge.
    pub(crate) fn description_of(worker: &str, version: &str, policies: &Policies) -> DescribeResponse {
        DescribeResponse {
            worker: worker.to_owned(),
            version: version.to_owned(),
            policies: policies.values().map(crate::Policy::message).collect(),
        }
    }

    /// Dispatches one RPC by its path.
    pub(crate) async fn call(
        self: Arc<Self>,
        request: http::Request<Incoming>,
        peer: Arc<str>,
    ) -> http::Response<Body> {
        let path = request.uri().path().to_owned();
        let Some((service, method)) = path.trim_start_matches('/').split_once('/') else {
            return Status::unimplemented("no such method").into_http();
        };
        match (service, method) {
            (NAME, "Describe") => {
                let describe = async move |request: Request<DescribeRequest>| self.describe(request.get_ref(), &peer);
                grpc(&Limits::default()).unary(Unary(describe), request).await
            }
            (NAME, "ValidateSettings") => {
                let mut grpc = grpc(&self.limits);
                readable(grpc.unary(Unary(async move |request| self.validate(request)), request).await)
            }
            (NAME, "Review") => {
                let mut grpc = grpc(&self.limits);
                readable(grpc.unary(Unary(async move |request| self.review(request).await), request).await)
            }
            (NAME, "ReviewStream") => {
                let mut grpc = grpc(&self.limits);
                grpc.streaming(Many(async move |request| self.review_stream(request)), request).await
            }
            (health::SERVICE, "Check") => {
                let check = async move |request: Request<health::HealthCheckRequest>| {
                    health::check(request.get_ref(), &self.stages).map(Response::new)
                };
                grpc(&Limits::default()).unary(Unary(check), request).await
            }
            (health::SERVICE, "Watch") => {
                let watch = async move |request: Request<health::HealthCheckRequest>| {
                    Ok(Response::new(health::watch(request.get_ref(), &self.stages)))
                };
                grpc(&Limits::default()).server_streaming(Unary(watch), request).await
            }
            _ => Status::unimplemented(format!("this worker has no method {path}")).into_http(),
        }
    }

    fn describe(&self, request: &DescribeRequest, peer: &str) -> Result<Response<DescribeResponse>, Status> {
        tracing::info!("described to gateway {:?} at {peer}", request.gateway_version);
        Ok(Response::new(self.description.clone()))
    }

    fn validate(
        &self,
        request: Request<ValidateSettingsRequest>,
    ) -> Result<Response<ValidateSettingsResponse>, Status> {
        let request = request.into_inner();
        let mut answer = ValidateSettingsResponse::default();
        match self.policies.get(&request.policy).map(|policy| policy.settings.read(&request.settings)) {
            Some(Ok((_, warnings))) => answer.warnings = warnings,
            Some(Err(invalid)) => {
                let errors = invalid.0.into_iter();
                answer.errors =
                    errors.map(|one| SettingsError { pointer: one.pointer, message: one.message }).collect();
            }
            None => {
                let message = format!("the worker holds no policy {:?}", request.policy);
                answer.errors.push(SettingsError { pointer: String::new(), message });
            }
        }
        Ok(Response::new(answer))
    }

    /// One call. When the client cancels it, this future is dropped, and the policy's with it.
    async fn review(&self, request: Request<ReviewRequest>) -> Result<Response<ReviewResponse>, Status> {
        let _open = self.activity.open();
        let Some(_permit) = self.in_flight.enter() else {
            return Err(Status::resource_exhausted(self.in_flight.refusal()));
        };
        let timeout = timeout_of(request.metadata())?;
        let sent =
            |name| request.metadata().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        let (traceparent, tracestate) = (sent("traceparent"), sent("tracestate"));
        let mut call = request.into_inner().call.unwrap_or_default();
        (call.traceparent, call.tracestate) = (traceparent, tracestate);
        // "document_index and timeout are not used here."
        let document = match call.document_source.take() {
            Some(DocumentSource::Document(document)) => Some(document),
            _ => None,
        };
        let outcome = match self.judge.begin(call, document) {
            Begun::Known(outcome) => outcome,
            Begun::Waiting(waiting) => match timeout {
                None => waiting.await,
                Some(timeout) => tokio::time::timeout(timeout, waiting).await.map_err(|_| late(timeout))?,
            },
        };
        Ok(Response::new(ReviewResponse { outcome: Some(outcome) }))
    }

    /// A stream of calls.
    fn review_stream(
        &self,
        request: Request<Streaming<ReviewStreamRequest>>,
    ) -> Result<Response<Answers<ReviewStreamResponse>>, Status> {
        let (sender, receiver) = mpsc::channel(1);
        let stream = ReviewStream::new(
            Arc::clone(&self.judge),
            Arc::clone(&self.in_flight),
            &self.limits,
            self.stages.clone(),
            Arc::clone(&self.activity),
        );
        tokio::spawn(stream.run(request.into_inner(), sender));
        Ok(Response::new(Answers::new(receiver)))
    }
}

fn late(timeout: Duration) -> Status {
    Status::deadline_exceeded(format!("no answer within the call's deadline of {} s", timeout.as_secs_f64()))
}

fn grpc<In, Out>(limits: &Limits) -> Grpc<Messages<In, Out>>
where
    In: prost::Message + Default + 'static,
    Out: prost::Message + 'static,
{
    let most = Some(limits.message_bytes);
    Grpc::new(Messages::default()).apply_max_message_size_config(most, most)
}

/// The status for a message that is too large: RESOURCE_EXHAUSTED, as gRPC defines it, for tonic's OUT_OF_RANGE.
pub(crate) fn too_large(status: Status) -> Status {
    if status.code() == Code::OutOfRange { Status::resource_exhausted(status.message()) } else { status }
}

fn readable(mut response: http::Response<Body>) -> http::Response<Body> {
    let headers: &mut HeaderMap = response.headers_mut();
    if headers.get("grpc-status").is_some_and(|code| *code == HeaderValue::from(Code::OutOfRange as i32)) {
        headers.insert("grpc-status", HeaderValue::from(Code::ResourceExhausted as i32));
    }
    response
}

/// A function as tonic's service with one request message.
struct Unary<F>(F);

impl<F, W, In, Out> UnaryService<In> for Unary<F>
where
    F: FnOnce(Request<In>) -> W + Clone,
    W: Future<Output = Result<Response<Out>, Status>> + Send + 'static,
{
    type Response = Out;
    type Future = W;

    fn call(&mut self, request: Request<In>) -> W {
        self.0.clone()(request)
    }
}

impl<F, W, In, Out> ServerStreamingService<In> for Unary<F>
where
    F: FnOnce(Request<In>) -> W + Clone,
    W: Future<Output = Result<Response<Answers<Out>>, Status>> + Send + 'static,
{
    type Response = Out;
    type ResponseStream = Answers<Out>;
    type Future = W;

    fn call(&mut self, request: Request<In>) -> W {
        self.0.clone()(request)
    }
}

/// A function as tonic's bidirectional streaming service.
struct Many<F>(F);

impl<F, W, In, Out> StreamingService<In> for Many<F>
where
    F: FnOnce(Request<Streaming<In>>) -> W + Clone,
    W: Future<Output = Result<Response<Answers<Out>>, Status>> + Send + 'static,
{
    type Response = Out;
    type ResponseStream = Answers<Out>;
    type Future = W;

    fn call(&mut self, request: Request<Streaming<In>>) -> W {
        self.0.clone()(request)
    }
}

/// The response messages of a stream, from a channel.
pub(crate) struct Answers<T>(mpsc::Receiver<Result<T, Status>>);

impl<T> Answers<T> {
    pub(crate) fn new(receiver: mpsc::Receiver<Result<T, Status>>) -> Self {
        Self(receiver)
    }
}

impl<T> Stream for Answers<T> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context)
    }
}
