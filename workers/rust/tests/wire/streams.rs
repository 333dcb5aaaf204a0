//! Many calls over one stream.

use std::collections::BTreeSet;

use admission_worker::Limits;

use crate::client::contract::outcome::Verdict;
use crate::client::contract::review_stream_request::RequestItem;
use crate::client::contract::{Phase, policy_call::DocumentSource};
use crate::client::{calling, cancelling, failure, is_plain_allow, policy_call, soon, until, validating};
use crate::workers::{Gate, served};

/// A fast call is answered while a slow one of the same message is open.
#[tokio::test]
async fn an_outcome_waits_for_no_other() {
    let gate = Gate::default();
    let (_serving, client) = served(&gate, Limits::default()).await;
    let mut stream = client.stream().await;
    stream.send(&[], vec![calling(1, validating("wait", "{}")), calling(2, validating("allow", "{}"))]).await;
    assert_eq!(stream.next().await.unwrap().0, 2);
    gate.open();
    let (id, outcome) = stream.next().await.unwrap();
    assert!(id == 1 && is_plain_allow(&outcome));
}

/// Outcomes that are known at the same time are batched.
#[tokio::test]
async fn outcomes_of_one_message_are_batched() {
    let (_serving, client) = served(&Gate::default(), Limits::default()).await;
    let mut stream = client.stream().await;
    stream.send(&[], (0..50).map(|id| calling(id, validating("allow", "{}"))).collect()).await;
    let mut messages = 0;
    let mut ids = BTreeSet::new();
    while ids.len() < 50 {
        let batch = soon(stream.incoming.message()).await.unwrap().unwrap();
        ids.extend(batch.items.iter().map(|item| item.id));
        messages += 1;
    }
    assert!(messages < 50, "50 outcomes in {messages} messages");
}

/// A cancel drops the policy's future, and no outcome is sent.
#[tokio::test]
async fn a_cancelled_call_gets_no_outcome() {
    let gate = Gate::default();
    let (_serving, client) = served(&gate, Limits::default()).await;
    let mut stream = client.stream().await;
    stream.send(&[], vec![calling(1, validating("wait", "{}"))]).await;
    until(|| async { gate.entered() == 1 }).await;
    stream.send(&[], vec![cancelling(1), cancelling(99), calling(2, validating("allow", "{}"))]).await;
    assert_eq!(stream.next().await.unwrap().0, 2);
    until(|| async { gate.dropped() == 1 }).await;
    stream.half_close();
    assert!(stream.next().await.is_none());
}

/// A call whose timeout is over is a failure; the others continue.
#[tokio::test]
async fn a_timeout_is_of_one_call() {
    let gate = Gate::default();
    let (_serving, client) = served(&gate, Limits::default()).await;
    let mut stream = client.stream().await;
    stream.send(&[], vec![calling(1, validating("wait", "{}"))]).await;
    until(|| async { gate.entered() == 1 }).await;
    let mut milliseconds = 50;
    // On a busy machine the timeout may be over before the call begins.
    while gate.entered() == 1 {
        let mut late = validating("wait", "{}");
        let (seconds, rest) = (milliseconds / 1000, milliseconds % 1000);
        late.timeout = Some(prost_types::Duration { seconds: seconds.into(), nanos: rest * 1_000_000 });
        stream.send(&[], vec![calling(2, late)]).await;
        let (id, outcome) = stream.next().await.unwrap();
        assert_eq!(id, 2);
        let seconds = f64::from(milliseconds) / 1000.0;
        assert_eq!(failure(&outcome), format!("policy wait: no answer within the call's timeout of {seconds} s"));
        assert_eq!(outcome.version, "7");
        milliseconds *= 2;
    }
    until(|| async { gate.dropped() == 1 }).await;
    gate.open();
    assert_eq!(stream.next().await.unwrap().0, 1);
}

/// A repeated open id gets one failure for both calls, and the first is cancelled.
#[tokio::test]
async fn two_calls_with_one_id_are_one_failure() {
    let gate = Gate::default();
    let (_serving, client) = served(&gate, Limits::default()).await;
    let mut stream = client.stream().await;
    stream.send(&[], vec![calling(1, validating("wait", "{}"))]).await;
    until(|| async { gate.entered() == 1 }).await;
    stream.send(&[], vec![calling(1, validating("allow", "{}"))]).await;
    let (id, outcome) = stream.next().await.unwrap();
    assert!(id == 1 && failure(&outcome).contains("open call with id 1 already"));
    until(|| async { gate.dropped() == 1 }).await;
    stream.send(&[], vec![calling(1, validating("allow", "{}"))]).await;
    assert!(is_plain_allow(&stream.next().await.unwrap().1), "the id is free again");
    stream.half_close();
    assert!(stream.next().await.is_none());
}

/// document_index refers to the documents of the message; a missing one is a failure of that call alone.
#[tokio::test]
async fn documents_are_found_by_their_index() {
    let (_serving, client) = served(&Gate::default(), Limits::default()).await;
    let mut stream = client.stream().await;
    let at = |index| {
        let mut call = policy_call("echo", Phase::Validating, "{}", "");
        call.document_source = Some(DocumentSource::DocumentIndex(index));
        call
    };
    let items = vec![calling(0, at(1)), calling(1, at(0)), calling(2, at(1)), calling(3, at(2))];
    stream.send(&[r#"{"a":1}"#, r#"{"b":2}"#], items).await;
    let mut messages = vec![String::new(); 4];
    for _ in 0..4 {
        let (id, outcome) = stream.next().await.unwrap();
        messages[usize::try_from(id).unwrap()] = match outcome.verdict {
            Some(Verdict::Deny(denied)) => denied.message,
            _ => failure(&outcome),
        };
    }
    let missing = "document_index is 2, and its message has 2 documents";
    assert_eq!(messages, [r#"{"b":2}"#, r#"{"a":1}"#, r#"{"b":2}"#, missing]);
}

/// After the half-close open calls are answered, and the stream ends.
#[tokio::test]
async fn a_half_closed_stream_is_answered_and_ends() {
    let gate = Gate::default();
    let (_serving, client) = served(&gate, Limits::default()).await;
    let mut stream = client.stream().await;
    stream.send(&[], vec![calling(1, validating("wait", "{}"))]).await;
    stream.half_close();
    until(|| async { gate.entered() == 1 }).await;
    gate.open();
    assert_eq!(stream.next().await.unwrap().0, 1);
    assert!(stream.next().await.is_none());
}

/// An item that is neither call nor cancel, and a message without items, are ignored.
#[tokio::test]
async fn what_a_newer_contract_may_send_is_ignored() {
    let (_serving, client) = served(&Gate::default(), Limits::default()).await;
    let mut stream = client.stream().await;
    stream.send(&[], vec![]).await;
    stream.send(&[], vec![RequestItem { id: 1, item: None }, calling(2, validating("allow", "{}"))]).await;
    assert_eq!(stream.next().await.unwrap().0, 2);
    stream.half_close();
    assert!(stream.next().await.is_none());
}

/// The worker stops reading from a peer that does not read; when the peer reads again, it gets all outcomes.
#[tokio::test]
async fn reading_stops_when_the_peer_does_not_read() {
    const CALLS: u64 = 2000; // of 100 KB each: 200 MB, of which a bounded part is buffered
    let mut limits = Limits::default();
    limits.message_bytes = 1_000_000;
    let (_serving, client) = served(&Gate::default(), limits).await;
    let mut stream = client.stream().await;
    let sender = stream.sender.take().unwrap();
    let sending = tokio::spawn(async move {
        for id in 0..CALLS {
            // Documents that fill messages, so that unread ones do not all fit into buffers.
            let document = format!("{{\"a\":\"{}\"}}", "x".repeat(20_000));
            let items = vec![calling(id, policy_call("flood", Phase::Validating, "{}", &document))];
            let message = crate::client::contract::ReviewStreamRequest { documents: vec![], items };
            sender.send(message).await.unwrap();
        }
    });
    // Another stream is served meanwhile.
    let mut other = client.stream().await;
    for id in 0..100 {
        other.send(&[], vec![calling(id, validating("allow", "{}"))]).await;
        assert_eq!(other.next().await.unwrap().0, id);
    }
    assert!(!sending.is_finished(), "everything was read from a peer that reads nothing");
    let mut ids = BTreeSet::new();
    while let Some((id, _)) = stream.next().await {
        assert!(ids.insert(id));
    }
    sending.await.unwrap();
    assert_eq!(ids.len() as u64, CALLS);
}
