//! The flags of every worker, and their environment variables.

use std::time::Duration;

use clap::builder::{ArgPredicate, PossibleValuesParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use tracing::Level;

use crate::address::Address;
use crate::logs::Format;
use crate::{Limits, ServeOptions, TlsFiles, Worker};

/// The longest grace period in seconds, a day. A longer one is an error.
const LONGEST_GRACE: f64 = 86_400.0;

/// The parsed flags.
pub(super) struct Flags {
    pub(super) listen: String,
    pub(super) options: ServeOptions,
    pub(super) log_format: Format,
    pub(super) log_level: Level,
    pub(super) conformance: bool,
}

/// Flags, or the text of `--help`, or an error of one line.
pub(super) enum Parsed {
    Flags(Flags),
    Help(String),
    Wrong(String),
}

/// Parses the arguments of the process.
pub(super) fn parse(worker: &Worker) -> Parsed {
    match command(worker).try_get_matches() {
        Ok(found) => Parsed::Flags(flags(&found)),
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            Parsed::Help(error.render().to_string())
        }
        Err(error) => Parsed::Wrong(one_line(&error.render().to_string())),
    }
}

fn command(worker: &Worker) -> Command {
    let names: Vec<&str> = worker.policies().iter().map(crate::Policy::name).collect();
    let about = format!("Serve the policies of worker {} {}: {}.", worker.name(), worker.version(), names.join(", "));
    let flag = |name: &'static str, variable: &'static str, help: &'static str| {
        Arg::new(name).long(name).env(variable).help(help).hide_env_values(true)
    };
    Command::new(worker.name().to_owned()).version(worker.version().to_owned()).about(about).args([
        flag("listen", "ADMISSION_WORKER_LISTEN", "The address to listen on: HOST:PORT, unix:PATH or unix:///ABSOLUTE")
            .default_value("127.0.0.1:50051")
            .value_parser(|text: &str| text.parse::<Address>().map(|_| text.to_owned())),
        flag("tls-cert", "ADMISSION_WORKER_TLS_CERT", "A certificate in PEM: serve TLS")
            .requires("tls-key")
            .value_parser(value_parser!(std::path::PathBuf)),
        flag("tls-key", "ADMISSION_WORKER_TLS_KEY", "Its private key in PEM")
            .requires("tls-cert")
            .value_parser(value_parser!(std::path::PathBuf)),
        flag("client-ca", "ADMISSION_WORKER_CLIENT_CA", "Serve only clients with a certificate of these authorities")
            .requires_if(ArgPredicate::IsPresent, "tls-cert")
            .value_parser(value_parser!(std::path::PathBuf)),
        flag("log-format", "ADMISSION_WORKER_LOG_FORMAT", "The format of log lines")
            .default_value("text")
            .value_parser(PossibleValuesParser::new(["text", "json"])),
        flag("log-level", "ADMISSION_WORKER_LOG_LEVEL", "The lowest level that is logged")
            .default_value("info")
            .value_parser(PossibleValuesParser::new(["debug", "info", "warning", "error"])),
        flag("in-flight", "ADMISSION_WORKER_IN_FLIGHT", "Concurrent calls; more are refused")
            .allow_negative_numbers(true)
            .default_value("4096")
            .value_parser(value_parser!(u32).range(1..)),
        flag("message-bytes", "ADMISSION_WORKER_MESSAGE_BYTES", "The largest message in bytes, received or sent")
            .allow_negative_numbers(true)
            .default_value("41048576")
            .value_parser(value_parser!(u32).range(1..)),
        flag("grace-period", "ADMISSION_WORKER_GRACE_PERIOD", "Seconds for open calls after a signal to stop")
            .allow_negative_numbers(true)
            .default_value("8")
            .value_parser(grace_period),
        flag("conformance", "ADMISSION_WORKER_CONFORMANCE", "Add the probe policies, for the conformance kit")
            .action(ArgAction::SetTrue),
    ])
}

fn grace_period(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.0..=LONGEST_GRACE).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| format!("must be seconds, from 0 to {LONGEST_GRACE}"))
}

fn flags(found: &ArgMatches) -> Flags {
    let text = |name: &str| found.get_one::<String>(name).cloned().unwrap_or_default();
    let count =
        |name: &str| found.get_one::<u32>(name).map_or(1, |count| usize::try_from(*count).unwrap_or(usize::MAX));
    let path = |name: &str| found.get_one::<std::path::PathBuf>(name).cloned();
    let limits = Limits {
        in_flight: count("in-flight"),
        message_bytes: count("message-bytes"),
        grace_period: found.get_one("grace-period").copied().unwrap_or_default(),
        ..Limits::default()
    };
    let tls = path("tls-cert").zip(path("tls-key"));
    let tls = tls.map(|(certificate, key)| TlsFiles { certificate, key, client_ca: path("client-ca") });
    Flags {
        listen: text("listen"),
        options: ServeOptions { limits, tls },
        log_format: if text("log-format") == "json" { Format::Json } else { Format::Text },
        log_level: match text("log-level").as_str() {
            "debug" => Level::DEBUG,
            "warning" => Level::WARN,
            "error" => Level::ERROR,
            _ => Level::INFO,
        },
        conformance: found.get_flag("conformance"),
    }
}

/// clap's message on one line, without its hint at `--help`.
fn one_line(text: &str) -> String {
    let lines =
        text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    lines.join(" ")
}
