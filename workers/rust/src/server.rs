//! A worker on its address, and its orderly end (`stages`).
//!
//! The connections are hyper's, one task each; what they call is put together in `service`. (tonic's own server would
//! choose for us what becomes of a deadline, of a certificate that changes, and of calls that are open at the end.)

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use crate::address::Address;
use crate::judging::{Judge, Policies};
use crate::limits::{InFlight, Limits};
use crate::listening::{Connection, Listener, ServeError};
use crate::service::Service;
use crate::stages::{Activity, Stage, Stages, reached};
use crate::tls::{HANDSHAKE, Tls, TlsFiles};

/// Calls that a connection may have beside those of calls: descriptions, settings, health, and calls that are refused.
const OTHER_CALLS: usize = 1024;

/// How often a connection on which nothing happens is called whether anybody is there, and how long it may take to say
/// so. Without it the streams of a gateway whose node has died would be open for ever.
const PING: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(20));

/// Between two looks whether a worker that is leaving is quiet.
const LOOK: Duration = Duration::from_millis(20);

/// After a connection could not be accepted: mostly there are no more files to be had, and trying at once takes a core.
const PAUSE: Duration = Duration::from_millis(50);

/// How a worker is served.
#[derive(Debug, Clone, Default)]
pub struct ServeOptions {
    /// How much it takes on.
    pub limits: Limits,
    /// TLS; None: whoever connects is believed.
    pub tls: Option<TlsFiles>,
}

/// A worker that is served. Dropping it ends it at once; [`stop`](Self::stop) in an orderly way.
#[derive(Debug)]
pub struct Serving {
    address: String,
    stage: watch::Sender<Stage>,
    activity: Arc<Activity>,
    grace: Duration,
    task: JoinHandle<()>,
}

/// What is served.
pub(crate) struct Served {
    pub(crate) worker: String,
    pub(crate) version: String,
    pub(crate) policies: Policies,
}

impl Serving {
    pub(crate) async fn begin(served: Served, address: &Address, options: ServeOptions) -> Result<Self, ServeError> {
        let tls = options.tls.map(Tls::read).transpose()?;
        let (listener, found) = Listener::bind(address).await?;
        let (stage, stages) = watch::channel(Stage::Serving);
        let activity = Activity::new();
        let limits = options.limits;
        let Served { worker, version, policies } = served;
        let service = Arc::new(Service {
            description: Service::description_of(&worker, &version, &policies),
            judge: Arc::new(Judge::new(worker, version, Arc::clone(&policies), &limits)),
            policies,
            in_flight: InFlight::new(limits.in_flight),
            stages: stages.clone(),
            activity: Arc::clone(&activity),
            limits: limits.clone(),
        });
        let task = tokio::spawn(accept(listener, tls, service, stages));
        Ok(Self { address: found.to_string(), stage, activity, grace: limits.grace_period, task })
    }

    /// The address for a gRPC client, with the port that was found where 0 was asked for.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Ends it in an orderly way: says NOT_SERVING, answers what still comes, finishes what is open; and cancels what is
    /// still open after the grace period.
    pub async fn stop(mut self) {
        let began = Instant::now();
        let end = began + self.grace;
        self.stage.send_replace(Stage::Leaving);
        while !self.activity.is_quiet(began) && Instant::now() < end && !self.task.is_finished() {
            tokio::time::sleep_until((Instant::now() + LOOK).min(end)).await;
        }
        self.stage.send_replace(Stage::Closing);
        if tokio::time::timeout_at(end, &mut self.task).await.is_err() {
            tracing::warn!("the grace period of {} s is over: what is open is cancelled", self.grace.as_secs_f64());
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.task.abort(); // with it go the listener and all connections, which are in its JoinSet
    }
}

/// Takes connections until the worker closes, and then lets them finish.
async fn accept(listener: Listener, tls: Option<Arc<Tls>>, service: Arc<Service>, mut stages: Stages) {
    let mut connections = JoinSet::new();
    let mut watch = JoinSet::new();
    if let Some(tls) = &tls {
        watch.spawn(Arc::clone(tls).watch());
    }
    let mut stages_of_all = stages.clone();
    loop {
        tokio::select! {
            () = reached(&mut stages_of_all, Stage::Closing) => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((connection, peer)) => {
                    connections.spawn(secured(connection, tls.clone(), Arc::clone(&service), peer, stages.clone()));
                }
                Err(error) => {
                    tracing::warn!("a connection could not be accepted: {error}");
                    tokio::time::sleep(PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    reached(&mut stages, Stage::Closing).await;
    while connections.join_next().await.is_some() {}
}

/// One connection, behind TLS where there is any.
async fn secured(
    connection: Box<dyn Connection>,
    tls: Option<Arc<Tls>>,
    service: Arc<Service>,
    peer: Arc<str>,
    stages: Stages,
) {
    let Some(tls) = tls else {
        return connected(connection, service, peer, stages).await;
    };
    match tokio::time::timeout(HANDSHAKE, tls.acceptor().accept(connection)).await {
        Ok(Ok(secure)) => connected(Box::new(secure), service, peer, stages).await,
        Ok(Err(error)) => tracing::warn!("no TLS connection with {peer}: {error}"),
        Err(_) => tracing::warn!("no TLS connection with {peer} within {} s", HANDSHAKE.as_secs()),
    }
}

/// One connection, until its peer has gone or the worker closes and nothing of it is open.
async fn connected(connection: Box<dyn Connection>, service: Arc<Service>, peer: Arc<str>, mut stages: Stages) {
    let calls = u32::try_from(service.limits.in_flight + OTHER_CALLS).unwrap_or(u32::MAX);
    let name = Arc::clone(&peer);
    let calling = service_fn(move |request| {
        let (service, peer) = (Arc::clone(&service), Arc::clone(&peer));
        async move { Ok::<_, Infallible>(service.call(request, peer).await) }
    });
    let serving = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(calls)
        .max_pending_accept_reset_streams(OTHER_CALLS)
        .keep_alive_interval(PING.0)
        .keep_alive_timeout(PING.1)
        .serve_connection(TokioIo::new(connection), calling);
    let mut serving = pin!(serving);
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = reached(&mut stages, Stage::Closing) => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!("the connection with {name} has ended: {error}");
    }
}
