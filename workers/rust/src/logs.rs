//! The worker's log: one line for each event on standard error, for people or as JSON.
//!
//! The gateway that started the worker, or the container runtime, collects standard error. Uids are logged, documents
//! never. Events that a policy logs with `tracing` are written too, with their fields; a program that has set its own
//! subscriber keeps it.

use std::fmt::{Debug, Write as _};
use std::io::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::json::quoted;

/// Libraries of which only warnings and errors are logged: at `debug` they log every frame.
const LIBRARIES: [&str; 6] = ["h2", "hyper", "hyper_util", "rustls", "tonic", "tokio_util"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Json,
}

/// Writes all events of this process to standard error.
pub(crate) fn start(format: Format, level: Level) {
    let _ = tracing::subscriber::set_global_default(Log { format, level }); // fails if the program has set its own
}

struct Log {
    format: Format,
    level: Level,
}

impl Subscriber for Log {
    fn enabled(&self, event: &Metadata<'_>) -> bool {
        let library = event.target().split("::").next().unwrap_or_default();
        let level = if LIBRARIES.contains(&library) { self.level.min(Level::WARN) } else { self.level };
        event.is_event() && *event.level() <= level
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let time = rfc3339(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
        let level = *event.metadata().level();
        let mut line = match self.format {
            Format::Text => fields.text(&time, level),
            Format::Json => fields.json(&time, level),
        };
        line.push('\n');
        let _ = std::io::stderr().lock().write_all(line.as_bytes()); // one write; an error cannot be logged
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1) // OpenTelemetry handles spans
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The fields of an event.
#[derive(Default)]
struct Fields {
    message: String,
    others: Vec<(&'static str, String)>,
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, format!("{value:?}"));
    }
}

impl Fields {
    fn put(&mut self, field: &Field, value: String) {
        match field.name() {
            "message" => self.message = value,
            name => self.others.push((name, value)),
        }
    }

    /// `TIME LEVEL MESSAGE (uid ..., policy ...)`, on one line: a line break would look like another event.
    fn text(&self, time: &str, level: Level) -> String {
        let mut line = format!("{time} {} {}", name_of(level).to_uppercase(), self.message);
        for (index, (name, value)) in self.others.iter().enumerate() {
            let _ = write!(line, "{}{name} {value}", if index == 0 { " (" } else { ", " });
        }
        if !self.others.is_empty() {
            line.push(')');
        }
        line.replace('\n', "\\n").replace('\r', "\\r")
    }

    fn json(&self, time: &str, level: Level) -> String {
        let (level, message) = (name_of(level), quoted(&self.message));
        let mut line = format!("{{\"time\":\"{time}\",\"level\":\"{level}\",\"message\":{message}");
        for (name, value) in &self.others {
            let _ = write!(line, ",{}:{}", quoted(name), quoted(value));
        }
        line.push('}');
        line
    }
}

fn name_of(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warning",
        Level::INFO => "info",
        _ => "debug",
    }
}

/// A time since 1970 in UTC to the millisecond, by Howard Hinnant's `civil_from_days`: a year begins in March, so that
/// its last day is the leap day, and 400 of them have 146,097 days.
fn rfc3339(since: Duration) -> String {
    let seconds = since.as_secs();
    let days = seconds / 86_400 + 719_468; // from 0000-03-01
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let millis = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Leap days, ends of years, and an ordinary day.
    #[test]
    fn times_are_those_of_the_calendar() {
        let at = |seconds: u64| rfc3339(Duration::from_millis(seconds * 1000 + 7));
        assert_eq!(at(0), "1970-01-01T00:00:00.007Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.007Z");
        assert_eq!(at(1_735_689_599), "2024-12-31T23:59:59.007Z");
        assert_eq!(at(1_795_348_865), "2026-11-22T12:01:05.007Z");
    }
}
