//! A policy that panics has failed, and nothing else has: the panic is caught where the policy was called.
//!
//! Its text may hold a Secret and stays in the log. Rust prints it, on several lines, before anybody can catch it; so
//! the worker's command takes that over, and the text goes into the one line that is logged of the failure.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use crate::functions::PolicyError;

thread_local! {
    static IN_POLICY: Cell<bool> = const { Cell::new(false) };
    static LOCATION: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs what an author wrote; a panic in it is an error.
pub(crate) fn caught<R>(work: impl FnOnce() -> R) -> Result<R, PolicyError> {
    let outer = IN_POLICY.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    IN_POLICY.set(outer);
    result.map_err(|payload| {
        let mut error = PolicyError::of_panic(payload.as_ref());
        if let Some(location) = LOCATION.take() {
            error.text = format!("{} ({location})", error.text);
        }
        error
    })
}

/// Keeps Rust from printing the panics of policies, which are logged; all others go where they went.
pub(crate) fn take_over() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if IN_POLICY.get() {
                LOCATION.set(panic.location().map(ToString::to_string));
            } else {
                before(panic);
            }
        }));
    });
}
