//! The shutdown of a worker, its health meanwhile, and its addresses.

use std::time::Duration;

use admission_worker::{Limits, ServeOptions};
use tonic::Code;

use crate::client::{NOT_SERVING, SERVICE_UNKNOWN, SERVING, calling, is_plain_allow, soon, until, validating};
use crate::workers::{Gate, served, worker};

/// Check and Watch know the server as a whole and the contract's service, and no others.
#[tokio::test]
async fn health_is_served_for_two_names() {
    let (_serving, client) = served(&Gate::default(), Limits::default()).await;
    for name in ["", "admission.worker.v1.Worker"] {
        assert_eq!(client.health(name).await.unwrap(), SERVING);
        assert_eq!(soon(client.watch(name).await.message()).await.unwrap().unwrap().status, SERVING);
    }
    assert_eq!(client.health("other").await.unwrap_err().code(), Code::NotFound);
    assert_eq!(soon(client.watch("other").await.message()).await.unwrap().unwrap().status, SERVICE_UNKNOWN);
}

/// A stopping worker reports NOT_SERVING to watches, answers open and new calls, and then ends.
#[tokio::test]
async fn nothing_is_lost_when_a_worker_stops() {
    let gate = Gate::default();
    let mut limits = Limits::default();
    limits.grace_period = Duration::from_secs(3600);
    let (serving, client) = served(&gate, limits).await;
    let mut watch = client.watch("").await;
    assert_eq!(soon(watch.message()).await.unwrap().unwrap().status, SERVING);
    let mut stream = client.stream().await;
    stream.send(&[], vec![calling(1, validating("wait", "{}"))]).await;
    until(|| async { gate.entered() == 1 }).await;
    let stopping = tokio::spawn(serving.stop());
    assert_eq!(soon(watch.message()).await.unwrap().unwrap().status, NOT_SERVING);
    assert!(soon(watch.message()).await.unwrap().is_none(), "then the watch ends");
    stream.send(&[], vec![calling(2, validating("allow", "{}"))]).await;
    assert_eq!(stream.next().await.unwrap().0, 2, "a new call is answered");
    assert!(is_plain_allow(&client.review(validating("allow", "{}")).await));
    gate.open();
    assert_eq!(stream.next().await.unwrap().0, 1, "the open call is answered");
    assert!(stream.next().await.is_none(), "a stream that is not half-closed ends when it is quiet");
    soon(stopping).await.unwrap();
}

/// Calls that are open after the grace period are cancelled.
#[tokio::test]
async fn the_grace_period_ends() {
    let gate = Gate::default();
    let mut limits = Limits::default();
    limits.grace_period = Duration::from_millis(100);
    let (serving, client) = served(&gate, limits).await;
    let stream = client.stream().await;
    stream.send(&[], vec![calling(1, validating("wait", "{}"))]).await;
    until(|| async { gate.entered() == 1 }).await;
    soon(serving.stop()).await;
    until(|| async { gate.dropped() == 1 }).await;
}

/// A Unix socket's file is replaced if no process listens on it, and removed with the worker.
#[tokio::test]
async fn an_unused_socket_file_is_replaced() {
    let path = std::env::temp_dir().join(format!("rust-sdk-{}.sock", std::process::id()));
    let address = format!("unix:{}", path.display());
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap()); // leaves its file behind
    let serving = worker(&Gate::default()).serve(&address, ServeOptions::default()).await.unwrap();
    assert_eq!(serving.address(), address);
    let taken = worker(&Gate::default()).serve(&address, ServeOptions::default()).await.unwrap_err();
    assert_eq!(
        taken.to_string(),
        format!("cannot listen on {address}: another process listens there; stop it or choose another path")
    );
    soon(serving.stop()).await;
    assert!(!path.exists());
}

/// A port in use and invalid addresses are errors that name the cause.
#[tokio::test]
async fn addresses_that_cannot_be_used_are_errors() {
    let gate = Gate::default();
    let (serving, _client) = served(&gate, Limits::default()).await;
    for (address, part) in [
        (serving.address(), "cannot listen on 127.0.0.1:"),
        ("127.0.0.1", "must be HOST:PORT"),
        ("127.0.0.1:70000", "must be HOST:PORT"),
        ("::1:50051", "an IPv6 address is written in brackets"),
        ("unix:", "has 1 to 107 bytes"),
        ("unix://relative", "must be followed by an absolute path"),
        ("unix:/nowhere/at/all/w.sock", "/nowhere/at/all is no directory that can be written to"),
    ] {
        let error = worker(&gate).serve(address, ServeOptions::default()).await.unwrap_err().to_string();
        assert!(error.contains(part) && !error.contains('\n'), "{error}");
    }
}
