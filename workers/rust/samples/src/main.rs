//! `samples`: serve the sample policies.

use std::process::ExitCode;

fn main() -> ExitCode {
    samples::worker().main()
}
