//! What Kubernetes accepts as a label's key and value (k8s.io/apimachinery/pkg/util/validation).
//!
//! A key is an optional prefix and a name: "name part must consist of alphanumeric characters, '-', '_' or '.', and must
//! start and end with an alphanumeric character" in at most 63 characters; the prefix is a DNS-1123 subdomain of at most
//! 253. A value is empty or a name.

const NAME_CHARACTERS: usize = 63;
const SUBDOMAIN_CHARACTERS: usize = 253;

/// Whether it can be a label's key, such as `team` or `app.kubernetes.io/name`.
#[must_use]
pub fn is_key(key: &str) -> bool {
    match key.rsplit_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_name(name),
        None => is_name(key),
    }
}

/// Whether it can be a label's value.
#[must_use]
pub fn is_value(value: &str) -> bool {
    value.is_empty() || is_name(value)
}

fn is_name(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    text.len() <= NAME_CHARACTERS && is_made_of(text, inside, |byte| byte.is_ascii_alphanumeric())
}

fn is_subdomain(text: &str) -> bool {
    let end = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() <= SUBDOMAIN_CHARACTERS
        && text.split('.').all(|label| is_made_of(label, |byte| end(byte) || byte == b'-', end))
}

/// Whether all bytes are of one kind, and the first and the last, which exist, of another.
fn is_made_of(text: &str, inside: impl Fn(u8) -> bool, end: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    bytes.iter().all(|byte| inside(*byte)) && ends.iter().all(|byte| byte.is_some_and(|byte| end(*byte)))
}
