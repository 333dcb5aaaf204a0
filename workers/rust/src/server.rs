//! A served worker and its graceful shutdown (`stages`).
//!
//! hyper serves the connections, one task each; `service` dispatches their calls. (tonic's own server leaves no choice
//! about deadlines, renewed certificates, and calls that are open at shutdown.)

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

/// HTTP/2 streams of a connection besides policy calls: descriptions, settings, health, and refused calls.
const OTHER_CALLS: usize = 1024;

/// Keepalive: the worker pings an idle connection after the first time, and closes it if no reply arrives within the
/// second. Otherwise the streams of a gateway on a failed node would stay open for ever.
const PING: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(20));

/// Between two checks whether a stopping worker is quiet.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// After a failed accept: the usual cause is the limit of open files, and an immediate retry would use a whole core.
const PAUSE: Duration = Duration::from_millis(50);

/// Options of [`Worker::serve`](crate::Worker::serve).
#[derive(Debug, Clone, Default)]
pub struct ServeOptions {
    /// The limits of the worker.
    pub limits: Limits,
    /// TLS; None: no TLS, and every client is served.
    pub tls: Option<TlsFiles>,
}

/// A served worker. Dropping it ends it at once; [`stop`](Self::stop) stops it gracefully.
#[derive(Debug)]
pub struct Serving {
    address: String,
    stage: watch::Sender<Stage>,
    activity: Arc<Activity>,
    grace: Duration,
    task: JoinHandle<()>,
}

/// The served part of a worker.
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

    /// The target for a gRPC client; port 0 is replaced by the port that the system chose.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Stops gracefully: reports NOT_SERVING, answers new calls for a moment, finishes open ones, and cancels those that
    /// are still open after the grace period.
    pub async fn stop(mut self) {
        let began = Instant::now();
        let end = began + self.grace;
        self.stage.send_replace(Stage::Leaving);
        while !self.activity.is_quiet(began) && Instant::now() < end && !self.task.is_finished() {
            tokio::time::sleep_until((Instant::now() + POLL_INTERVAL).min(end)).await;
        }
        self.stage.send_replace(Stage::Closing);
        if tokio::time::timeout_at(end, &mut self.task).await.is_err() {
            tracing::warn!("the grace period of {} s is over: open calls are cancelled", self.grace.as_secs_f64());
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.task.abort(); // also drops the listener and all connections, which are in its JoinSet
    }
}

/// Accepts connections until the worker closes, and waits until they have finished.
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
                    tracing::warn!("cannot accept a connection: {error}");
                    tokio::time::sleep(PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    reached(&mut stages, Stage::Closing).await;
    while connections.join_next().await.is_some() {}
}

/// Serves one connection, with TLS if it is configured.
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

/// Serves one connection until its peer closes it, or the worker closes and its open calls have finished.
async fn connected(connection: Box<dyn Connection>, service: Arc<Service>, peer: Arc<str>, mut stages: Stages) {
    let calls = u32::try_from(service.limits.in_flight + OTHER_CALLS).unwrap_or(u32::MAX);
    let name = Arc::clone(&peer);
    let handler = service_fn(move |request| {
        let (service, peer) = (Arc::clone(&service), Arc::clone(&peer));
        async move { Ok::<_, Infallible>(service.call(request, peer).await) }
    });
    let serving = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(calls)
        .max_pending_accept_reset_streams(OTHER_CALLS)
        .keep_alive_interval(PING.0)
        .keep_alive_timeout(PING.1)
        .serve_connection(TokioIo::new(connection), handler);
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
