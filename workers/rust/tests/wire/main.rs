//! The SDK over real sockets, as the gateway calls it.

#![allow(missing_docs, reason = "tests")]

mod client;
mod contract_drift;
mod ends;
mod refusals;
mod reviews;
mod streams;
mod tls;
#[cfg(feature = "opentelemetry")]
mod traces;
mod workers;
