//! The worker's command: flags, signals, and the stop when its supervisor exits.
//!
//! Every flag has an environment variable (`ADMISSION_WORKER_LISTEN` for `--listen`), which it overrides. Exit code 0:
//! stopped by SIGTERM or SIGINT; 1: the worker could not listen; 2: a wrong flag. A second signal ends it at once, with
//! exit code 1.
//!
//! Started by a gateway (`ADMISSION_WORKER_SUPERVISED=1`), it also stops when its standard input ends: the gateway holds
//! the other end and writes nothing, so the end means that the gateway has exited, even by SIGKILL. Otherwise an orphaned
//! worker would keep the socket.

mod flags;

use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

use crate::{ServeError, Worker, logs, panics};

use flags::{Flags, Parsed};

const SUPERVISED: &str = "ADMISSION_WORKER_SUPERVISED";

/// The fewest threads: with only one, a policy that computes would delay health and all other calls.
const FEWEST_THREADS: usize = 2;

/// Runs a worker's command with the arguments of the process.
pub(crate) fn run(worker: Worker) -> ExitCode {
    let flags = match flags::parse(&worker) {
        Parsed::Flags(flags) => flags,
        Parsed::Help(text) => {
            print!("{text}");
            return ExitCode::SUCCESS;
        }
        Parsed::Wrong(line) => {
            eprintln!("{line}");
            return ExitCode::from(2);
        }
    };
    logs::start(flags.log_format, flags.log_level);
    panics::install_hook();
    let threads = std::thread::available_parallelism().map_or(FEWEST_THREADS, |cores| cores.get().max(FEWEST_THREADS));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return failed(&format!("cannot start threads: {error}")),
    };
    let worker = if flags.conformance { worker.with_probes() } else { worker };
    let result = runtime.block_on(serve(&worker, flags));
    runtime.shutdown_background(); // does not wait for a policy's blocking threads, which cannot be stopped
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error.to_string()),
    }
}

fn failed(reason: &str) -> ExitCode {
    tracing::error!("{reason}");
    ExitCode::FAILURE
}

async fn serve(worker: &Worker, flags: Flags) -> Result<(), ServeError> {
    let handled = |kind| signal(kind).map_err(|error| ServeError(format!("cannot handle signals: {error}")));
    let mut terminate = handled(SignalKind::terminate())?;
    let mut interrupt = handled(SignalKind::interrupt())?;
    let grace = flags.options.limits.grace_period.as_secs_f64();
    let serving = worker.serve(&flags.listen, flags.options).await?;
    let names: Vec<&str> = worker.policies().iter().map(crate::Policy::name).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let (name, version, address) = (worker.name(), worker.version(), serving.address());
    tracing::info!("worker {name} {version} listens on {address}; policies: {names}");

    let orphaned = Arc::new(Notify::new());
    if std::env::var(SUPERVISED).is_ok_and(|value| value == "1") {
        watch_standard_input(Arc::clone(&orphaned));
    }
    tokio::select! {
        name = received(&mut terminate, &mut interrupt) => tracing::info!("{name} received"),
        () = orphaned.notified() => {
            tracing::info!("standard input has ended: the parent process is gone");
        }
    }
    tracing::info!("stopping: open calls have {grace} s");
    tokio::select! {
        () = serving.stop() => {}
        name = received(&mut terminate, &mut interrupt) => {
            tracing::warn!("{name} again: ending at once");
            std::process::exit(1);
        }
    }
    tracing::info!("stopped");
    Ok(())
}

async fn received(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}

/// Reads in a thread of its own: standard input may be a pipe, a terminal, a file or closed.
fn watch_standard_input(orphaned: Arc<Notify>) {
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        let mut input = std::io::stdin().lock();
        // An error counts as the end: without standard input there is no supervisor.
        while input.read(&mut buffer).is_ok_and(|count| count > 0) {}
        orphaned.notify_one();
    });
}
