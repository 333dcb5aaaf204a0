//! JSON Pointers (RFC 6901) of claims and settings errors.
//!
//! "The token `~` is encoded as `~0` and `/` as `~1`": RFC 6901, section 3. In claims a token `*` stands for every
//! element or member, so a member named `*` cannot be claimed alone.

use std::fmt::Display;

use indexmap::IndexSet;

/// Pointers in one claim, and tokens in one pointer: the gateway accepts no more, and no request is nested deeper.
pub(crate) const MOST: usize = 256;

/// The JSON Pointer of a place: `pointer(["metadata", "labels", "a/b"])` is `/metadata/labels/a~1b`.
pub fn pointer<T: Display>(tokens: impl IntoIterator<Item = T>) -> String {
    let mut text = String::new();
    for token in tokens {
        text.push('/');
        text.push_str(&token.to_string().replace('~', "~0").replace('/', "~1"));
    }
    text
}

/// The unescaped tokens of a valid pointer: `/a~1b/0` is `a/b`, `0`.
pub(crate) fn tokens(text: &str) -> Vec<String> {
    let parts = text.split('/').skip(1);
    parts.map(|token| token.replace("~1", "/").replace("~0", "~")).collect()
}

/// Whether a text is empty or a pointer.
pub(crate) fn is_pointer(text: &str) -> bool {
    let escapes_are_whole = text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    (text.is_empty() || text.starts_with('/')) && escapes_are_whole
}

/// Checks claimed pointers and removes duplicates, which the gateway rejects and which lists of places can contain.
pub(crate) fn checked(claims: Vec<String>, what: &str) -> Result<Vec<String>, String> {
    let pointers: IndexSet<String> = claims.into_iter().collect();
    for claim in &pointers {
        if claim.is_empty() {
            return Err(format!("{what}: \"\" is no place; everything is spelt Claim::Everything"));
        }
        if !is_pointer(claim) {
            return Err(format!("{what}: {claim:?} is no JSON Pointer such as \"/object/metadata/labels\""));
        }
        if claim.matches('/').count() > MOST {
            let start: String = claim.chars().take(80).collect();
            return Err(format!(
                "{what}: {start:?}... has more than {MOST} segments, and no request is nested so deep"
            ));
        }
    }
    if pointers.len() > MOST {
        let count = pointers.len();
        return Err(format!("{what}: at most {MOST} pointers, there are {count}; claim what holds several of them"));
    }
    Ok(pointers.into_iter().collect())
}
