//! Regular expressions in RE2's syntax, as in all languages of the samples. In RE2, and in the crate `regex`, a match takes
//! time proportional to the text, so that no value can make one slow. The crate's syntax is nearly the same.
//!
//! Where the two differ, an expression is translated:
//!
//! | RE2 | the crate | translated |
//! | --- | --- | --- |
//! | `\d`, `\s`, `\w`, `\b`, `\B` are ASCII's | Unicode's | written out |
//! | `[a[b]`, `[a&&b]`, `[a~~b]`, `[+--]`: text and ranges | classes of classes | escaped |
//! | `\<` and every escaped punctuation mark: text | some are boundaries, some an error | escaped, or bare |
//! | `a{`, `a{,2}`: text | an error | escaped |
//! | `\Q...\E` is text, `\C` a byte, `\101` an `A` | errors | written out |
//! | `a**`, `a{1001}`, `(?x)`, `(?u)`, `\u0041` are errors | are valid | rejected |

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::Chars;

use regex::bytes::Regex;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};

/// The most repetitions that RE2 accepts (`kMaxRepeat`).
const MOST_REPETITIONS: u32 = 1000;

/// A regular expression in a policy's settings, compiled when they are converted.
pub struct Pattern {
    text: String,
    /// Matches whole texts; None: the text is no regular expression.
    whole: Option<Regex>,
}

impl Pattern {
    /// A pattern from a text, valid or not.
    #[must_use]
    pub fn new(text: &str) -> Self {
        // Compiled alone first: an invalid expression such as `a)(b` could be valid inside a group.
        let translated = translated(text).filter(|pattern| Regex::new(pattern).is_ok());
        let whole = translated.and_then(|pattern| Regex::new(&format!(r"\A(?:{pattern})\z")).ok());
        Self { text: text.to_owned(), whole }
    }

    /// The text as it is written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is a regular expression.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.whole.is_some()
    }

    /// Whether it matches the whole text.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        self.whole.as_ref().is_some_and(|whole| whole.is_match(text.as_bytes()))
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        String::deserialize(source).map(|text| Self::new(&text))
    }
}

impl JsonSchema for Pattern {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Pattern".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

/// The expression in the crate's syntax; None for one that RE2 rejects and the crate accepts.
fn translated(text: &str) -> Option<String> {
    let mut rest = text.chars().peekable();
    let mut out = String::new();
    let mut repeats = false;
    while let Some(found) = rest.next() {
        let mut repetition = matches!(found, '*' | '+' | '?');
        match found {
            '\\' => escape(&mut rest, &mut out, false)?,
            '[' => class(&mut rest, &mut out)?,
            '(' => group(&mut rest, &mut out)?,
            '{' => match counts(&mut rest)? {
                Some(counts) => {
                    repetition = true;
                    out.push_str(&counts);
                }
                None => out.push_str(r"\{"),
            },
            '}' => out.push_str(r"\}"),
            _ => out.push(found),
        }
        if repetition && repeats {
            return None; // "bad repetition operator: **"
        }
        if repetition && rest.next_if_eq(&'?').is_some() {
            out.push('?');
        }
        repeats = repetition;
    }
    Some(out)
}

/// Translates what follows a backslash.
fn escape(rest: &mut Peekable<Chars<'_>>, out: &mut String, in_class: bool) -> Option<()> {
    let found = rest.next()?;
    match found {
        'd' => *out += "[0-9]",
        's' => *out += r"[\t\n\f\r ]",
        'w' => *out += "[0-9A-Za-z_]",
        'D' => *out += "[^0-9]",
        'S' => *out += r"[^\t\n\f\r ]",
        'W' => *out += "[^0-9A-Za-z_]",
        'b' if !in_class => *out += r"(?-u:\b)",
        'B' if !in_class => *out += r"(?-u:\B)",
        'C' if !in_class => *out += r"(?s-u:.)",
        '0'..='7' => octal(found, rest, out)?,
        'u' | 'U' => return None,
        'Q' if !in_class => quotation(rest, out),
        _ if found.is_ascii_punctuation() => *out += &regex::escape(&found.to_string()),
        _ => {
            out.push('\\');
            out.push(found);
        }
    }
    Some(())
}

/// A character by up to three octal digits. "Single non-zero digit is a backreference; not supported".
fn octal(first: char, rest: &mut Peekable<Chars<'_>>, out: &mut String) -> Option<()> {
    let mut digits = first.to_string();
    while let Some(digit) = rest.next_if(|next| digits.len() < 3 && next.is_digit(8)) {
        digits.push(digit);
    }
    if digits.len() == 1 && first != '0' {
        return None;
    }
    *out += &regex::escape(&char::from_u32(u32::from_str_radix(&digits, 8).ok()?)?.to_string());
    Some(())
}

/// Translates a literal text up to `\E` or the end.
fn quotation(rest: &mut Peekable<Chars<'_>>, out: &mut String) {
    let mut quoted = String::new();
    while let Some(found) = rest.next() {
        if found == '\\' && rest.next_if_eq(&'E').is_some() {
            break;
        }
        quoted.push(found);
    }
    *out += &regex::escape(&quoted);
}

/// Translates what follows the bracket that opens a class.
fn class(rest: &mut Peekable<Chars<'_>>, out: &mut String) -> Option<()> {
    out.push('[');
    if rest.next_if_eq(&'^').is_some() {
        out.push('^');
    }
    let mut is_first = true;
    loop {
        match rest.next()? {
            ']' if !is_first => break,
            '\\' => escape(rest, out, true)?,
            '[' if rest.peek() == Some(&':') => {
                out.push('['); // a named class, [:alpha:]
                loop {
                    let found = rest.next()?;
                    out.push(found);
                    if found == ']' {
                        break;
                    }
                }
            }
            '-' if is_first => *out += r"\-",
            // A range up to a dash; in the crate `--` is a difference of classes.
            '-' if rest.next_if_eq(&'-').is_some() => *out += r"-\-",
            found @ ('[' | ']' | '&' | '~') => {
                out.push('\\');
                out.push(found);
            }
            found => out.push(found),
        }
        is_first = false;
    }
    out.push(']');
    Some(())
}

/// Translates what follows the parenthesis that opens a group: RE2's flags, or text that the crate checks itself.
fn group(rest: &mut Peekable<Chars<'_>>, out: &mut String) -> Option<()> {
    out.push('(');
    if rest.next_if_eq(&'?').is_some() {
        out.push('?');
        while let Some(flag) = rest.next_if(|found| found.is_ascii_alphabetic() && *found != 'P' || *found == '-') {
            if !matches!(flag, 'i' | 'm' | 's' | 'U' | '-') {
                return None;
            }
            out.push(flag);
        }
        if rest.next_if_eq(&'P').is_some() {
            out.push('P');
        }
    }
    Some(())
}

/// Reads what follows a brace: `N}`, `N,}` or `N,M}` are repetitions, returned with the braces; anything else is text, and
/// is not consumed. An outer None: more repetitions than RE2 accepts.
#[allow(clippy::option_option, reason = "rejected, or text, or repetitions")]
fn counts(rest: &mut Peekable<Chars<'_>>) -> Option<Option<String>> {
    let ahead: String = rest.clone().take_while(|found| *found != '}').collect();
    let (least, most) = ahead.split_once(',').unwrap_or((&ahead, &ahead));
    let is_count = |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    let is_closed = rest.clone().nth(ahead.chars().count()) == Some('}');
    if !is_closed || !is_count(least) || !(most.is_empty() || is_count(most)) {
        return Some(None);
    }
    let is_too_many =
        |text: &str| !text.is_empty() && !text.parse::<u32>().is_ok_and(|count| count <= MOST_REPETITIONS);
    if is_too_many(least) || is_too_many(most) {
        return None;
    }
    rest.nth(ahead.len()); // with the brace
    Some(Some(format!("{{{ahead}}}")))
}
