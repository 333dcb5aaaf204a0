//! Panics of policies: each is caught where the policy was called, and is a failure of that call alone.
//!
//! A panic's text may contain a Secret and stays in the log. Rust prints it on several lines before it can be caught; so
//! the worker's command replaces the panic hook, and the text is part of the failure's one log line.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use crate::functions::PolicyError;

thread_local! {
    static IN_POLICY: Cell<bool> = const { Cell::new(false) };
    static LOCATION: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs an author's code; a panic in it is an error.
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

/// Installs a panic hook that does not print the panics of policies, which are logged; others use the previous hook.
pub(crate) fn install_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if IN_POLICY.get() {
                LOCATION.set(panic.location().map(ToString::to_string));
            } else {
                previous(panic);
            }
        }));
    });
}
