//! Deadlines, cancels, and a worker that is full.

use std::time::Duration;

use admission_worker::Limits;
use tonic::{Code, Request};

use crate::client::contract::ReviewRequest;
use crate::client::{Client, calling, cancelling, failure, is_plain_allow, soon, until, validating};
use crate::workers::{Gate, served};

fn waiting() -> Request<ReviewRequest> {
    Request::new(ReviewRequest { call: Some(validating("wait", "{}")) })
}

fn one_at_a_time() -> Limits {
    let mut limits = Limits::default();
    limits.in_flight = 1;
    limits
}

/// The gRPC deadline ends the call, and the policy's future.
#[tokio::test]
async fn a_deadline_ends_review_and_its_work() {
    let gate = Gate::default();
    let (_serving, client) = served(&gate, Limits::default()).await;
    let mut milliseconds = 100;
    // On a busy machine the deadline may be over before the call begins.
    while gate.entered() == 0 {
        let mut request = waiting();
        request.metadata_mut().insert("grpc-timeout", format!("{milliseconds}m").parse().unwrap());
        // The client counts too, and calls it a cancel.
        let code = client.try_review(request).await.unwrap_err().code();
        assert!(matches!(code, Code::DeadlineExceeded | Code::Cancelled), "{code}");
        milliseconds *= 2;
    }
    until(|| async { gate.dropped() == gate.entered() }).await;
}

/// A cancelled call drops the policy's future, and no longer counts as in flight.
#[tokio::test]
async fn a_cancelled_review_stops_its_work() {
    let gate = Gate::default();
    let (_serving, client) = served(&gate, one_at_a_time()).await;
    let other = client.clone();
    let call = tokio::spawn(async move { other.try_review(waiting()).await });
    until(|| async { gate.entered() == 1 }).await;
    call.abort();
    until(|| async { gate.dropped() == 1 }).await;
    assert!(is_plain_allow(&client.review(validating("allow", "{}")).await));
}

/// A call beyond the limit is RESOURCE_EXHAUSTED on Review and a failure on the stream, at once.
#[tokio::test]
async fn a_full_worker_refuses() {
    let gate = Gate::default();
    let (_serving, client) = served(&gate, one_at_a_time()).await;
    let mut stream = client.stream().await;
    stream.send(&[], vec![calling(1, validating("wait", "{}")), calling(2, validating("allow", "{}"))]).await;
    let (id, outcome) = stream.next().await.unwrap();
    assert_eq!(id, 2);
    assert!(failure(&outcome).contains("limit of 1 calls in flight"));
    until(|| async { gate.entered() == 1 }).await;
    let refused = Request::new(ReviewRequest { call: Some(validating("allow", "{}")) });
    assert_eq!(client.try_review(refused).await.unwrap_err().code(), Code::ResourceExhausted);
    stream.send(&[], vec![cancelling(1)]).await;
    until(|| async { gate.dropped() == 1 }).await;
    assert!(is_plain_allow(&client.review(validating("allow", "{}")).await), "another call is accepted again");
}

/// A closed connection cancels all calls that were open on it.
#[tokio::test]
async fn a_closed_connection_cancels_its_calls() {
    let gate = Gate::default();
    let (serving, client) = served(&gate, Limits::default()).await;
    let stream = client.stream().await;
    stream.send(&[], vec![calling(1, validating("wait", "{}")), calling(2, validating("wait", "{}"))]).await;
    until(|| async { gate.entered() == 2 }).await;
    drop((stream, client));
    until(|| async { gate.dropped() == 2 }).await;
    let other = Client::connect(serving.address()).await;
    assert!(is_plain_allow(&soon(other.review(validating("allow", "{}"))).await));
}

/// The request's token notifies work that a policy has started elsewhere.
#[tokio::test]
async fn the_token_notifies_work_elsewhere() {
    use admission_worker::{Policy, ServeOptions, Worker};
    let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
    let policy = Policy::validating("elsewhere").judge_async(move |request, _| {
        let sender = sender.clone();
        tokio::spawn(async move {
            sender.send("begun").unwrap();
            request.cancelled().cancelled().await;
            sender.send("cancelled").unwrap();
        });
        std::future::pending::<()>()
    });
    let worker = Worker::new("tests", "1").policy(policy);
    let serving = worker.serve("127.0.0.1:0", ServeOptions::default()).await.unwrap();
    let client = Client::connect(serving.address()).await;
    let stream = client.stream().await;
    stream.send(&[], vec![calling(1, validating("elsewhere", "{}"))]).await;
    assert_eq!(soon(events.recv()).await.unwrap(), "begun");
    stream.send(&[], vec![cancelling(1)]).await;
    assert_eq!(soon(events.recv()).await.unwrap(), "cancelled");
}

/// An invalid deadline is an error of the client.
#[tokio::test]
async fn an_invalid_deadline_is_refused() {
    let (_serving, client) = served(&Gate::default(), Limits::default()).await;
    let mut request = Request::new(ReviewRequest { call: Some(validating("allow", "{}")) });
    request.metadata_mut().insert("grpc-timeout", "soon".parse().unwrap());
    assert_eq!(client.try_review(request).await.unwrap_err().code(), Code::InvalidArgument);
    let mut request = Request::new(ReviewRequest { call: Some(validating("allow", "{}")) });
    request.set_timeout(Duration::from_secs(60));
    assert!(is_plain_allow(&client.try_review(request).await.unwrap()));
}
