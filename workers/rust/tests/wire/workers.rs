//! The workers that the tests call.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use admission_worker::{
    Answer, Cause, Details, Json, Limits, Operation, Policy, ServeOptions, Serving, Worker, allow, deny, fail, merge,
    mutated, patch,
};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::client::Client;

/// A gate at which policies wait, and a count of those that were dropped while they waited.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<Inside>);

struct Inside {
    open: Semaphore,
    entered: AtomicUsize,
    dropped: AtomicUsize,
}

impl Default for Inside {
    fn default() -> Self {
        Self { open: Semaphore::new(0), entered: AtomicUsize::new(0), dropped: AtomicUsize::new(0) }
    }
}

impl Gate {
    /// Releases one waiting policy.
    pub(crate) fn open(&self) {
        self.0.open.add_permits(1);
    }

    pub(crate) fn entered(&self) -> usize {
        self.0.entered.load(Ordering::SeqCst)
    }

    pub(crate) fn dropped(&self) -> usize {
        self.0.dropped.load(Ordering::SeqCst)
    }

    async fn pass(&self) {
        self.0.entered.fetch_add(1, Ordering::SeqCst);
        let mut waiting = Waiting(Some(self));
        self.0.open.acquire().await.expect("it is never closed").forget();
        waiting.0 = None;
    }
}

struct Waiting<'a>(Option<&'a Gate>);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(gate) = self.0 {
            gate.0.dropped.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// A worker with a policy for each form of answer, one that waits at the gate, and some that fail.
pub(crate) fn worker(gate: &Gate) -> Worker {
    let gate = gate.clone();
    Worker::new("tests", "7")
        .policy(Policy::validating("allow").judge(|_, _| ()))
        .policy(Policy::validating("deny").version("3").judge(|_, _| {
            deny("no")
                .code(422)
                .cause(Cause::new("spec.x", "must be odd"))
                .details(Details { name: "n".to_owned(), retry_after_seconds: 7, ..Details::default() })
                .warning("a warning")
                .audit_annotation("checked", "yes")
                .no_store()
        }))
        .policy(Policy::validating("fail").judge(|_, _| fail("the inventory cannot be reached")))
        .policy(Policy::mutating("patch").judge(|_, _| patch([Operation::add("/metadata/labels", json!({"a": "b"}))])))
        .policy(Policy::mutating("merge").judge(|_, _| merge(json!({"metadata": {"labels": {"a": "b"}}}))))
        .policy(
            Policy::mutating("mutated")
                .judge(|request, _| request.object::<Json>().map(|object| mutated(object.unwrap_or_default()))),
        )
        .policy(Policy::mutating("nothing").judge(|_, _| patch(Vec::<Operation<()>>::new())))
        .policy(Policy::validating("change").judge(|_, _| patch([Operation::remove("/x") as Operation<()>])))
        .policy(Policy::validating("panic").judge(|_, _| -> Answer { panic!("a secret") }))
        .policy(Policy::validating("panic-later").judge_async(|_, _| async {
            tokio::task::yield_now().await;
            assert!(std::hint::black_box(false), "a secret");
        }))
        .policy(Policy::validating("error").judge(|_, _| "a secret".parse::<u8>().map(|_| ())))
        .policy(Policy::validating("misread").judge(|request, _| request.object::<u8>().map(|_| ())))
        .policy(Policy::validating("bad-key").judge(|_, _| allow().audit_annotation("no spaces", "x")))
        .policy(
            Policy::validating("echo").judge(|request, _| {
                deny(String::from_utf8_lossy(request.raw())).audit_annotation("uid", request.uid())
            }),
        )
        .policy(Policy::validating("flood").judge(|_, _| deny("x".repeat(100_000))))
        .policy(Policy::validating("wait").judge_async(move |_, _| {
            let gate = gate.clone();
            async move { gate.pass().await }
        }))
}

/// The worker, served with these limits, and a client of it.
pub(crate) async fn served(gate: &Gate, limits: Limits) -> (Serving, Client) {
    let serving = worker(gate).serve("127.0.0.1:0", ServeOptions { limits, tls: None }).await.expect("it serves");
    let client = Client::connect(serving.address()).await;
    (serving, client)
}
