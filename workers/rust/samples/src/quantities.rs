//! Kubernetes' quantities (k8s.io/apimachinery/pkg/api/resource): `100m`, `1Gi`, `1e3`, `0.5`.
//!
//! ```text
//! <quantity>        ::= <signedNumber><suffix>
//! <suffix>          ::= <binarySI> | <decimalExponent> | <decimalSI>
//! <binarySI>        ::= Ki | Mi | Gi | Ti | Pi | Ei
//! <decimalSI>       ::= n | u | m | "" | k | M | G | T | P | E
//! <decimalExponent> ::= "e" <signedNumber> | "E" <signedNumber>
//! ```
//!
//! "No matter which of the three exponent forms is used, no quantity may represent a number greater than 2^63-1 in
//! magnitude, nor may it have more than 3 decimal places. Numbers larger or more precise will be capped or rounded up.
//! (E.g.: 0.1m will rounded up to 1m.)" The code behind it rounds up at a billionth, and so does this.

use std::sync::LazyLock;

use admission_worker::Json;
use admission_worker::json::quoted;
use regex::Regex;

static QUANTITY: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = concat!(
        r"\A(?P<sign>[+-]?)(?P<whole>[0-9]*)(?P<part>\.[0-9]*)?",
        r"(?:[eE](?P<exponent>[+-]?[0-9]{1,9})|(?P<suffix>[KMGTPE]i|[numkMGTPE])?)\z"
    );
    Regex::new(pattern).expect("it is written above")
});

/// Billionths, to which everything is rounded up.
const NANO: i32 = 9;

/// 2^63-1, in billionths.
const LARGEST: i128 = (1_i128 << 63).wrapping_sub(1) * 1_000_000_000;

/// Digits of `LARGEST`: a number with more is larger.
const LARGEST_DIGITS: usize = 28;

/// The most characters of a quantity: the largest has 19 digits before and 9 after the point.
const LONGEST: usize = 128;

/// Larger and smaller exponents are replaced by these: times 10^256 every number exceeds the largest, and times 10^-256 a
/// number of at most 128 digits is below a billionth. So a `1e999999999` costs nothing.
const EXPONENTS: i32 = 256;

/// A quantity as it is written in JSON: a text as it is, any other value as JSON text.
#[must_use]
pub fn written(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

/// The value of a quantity, a JSON text or number, in billionths, capped and rounded up as Kubernetes does.
///
/// # Errors
/// The value is not a quantity; the message quotes it.
pub fn quantity(value: &Json) -> Result<i128, String> {
    let text = written(value);
    let is_text_or_number = matches!(value, Json::String(_) | Json::Number(_));
    let read = (is_text_or_number && text.chars().count() <= LONGEST).then(|| read(&text)).flatten();
    read.ok_or_else(|| {
        let start: String = text.chars().take(LONGEST).collect();
        format!("{} is no quantity such as 100m, 0.5 or 1Gi", quoted(&start))
    })
}

fn read(text: &str) -> Option<i128> {
    let found = QUANTITY.captures(text)?;
    let named = |name: &str| found.name(name).map_or("", |found| found.as_str());
    let (whole, part) = (named("whole"), named("part").trim_start_matches('.'));
    if whole.is_empty() && part.is_empty() {
        return None;
    }
    let exponent = match named("exponent") {
        "" => 0,
        digits => digits.parse::<i32>().ok()?.clamp(-EXPONENTS, EXPONENTS),
    };
    let (power, factor) = suffix(named("suffix"));
    let digits: Vec<u8> = whole.bytes().chain(part.bytes()).map(|digit| digit - b'0').collect();
    let places = i32::try_from(part.len()).ok()?;
    let magnitude = rounded_up(&times(&digits, factor), exponent + power + NANO - places);
    Some(if named("sign") == "-" { -magnitude } else { magnitude })
}

/// A suffix as a power of ten and a factor.
fn suffix(name: &str) -> (i32, u64) {
    if let Some(name) = name.strip_suffix('i') {
        return (0, 1 << (10 * (1 + "KMGTPE".find(name).unwrap_or_default())));
    }
    let power = match name {
        "n" => -9,
        "u" => -6,
        "m" => -3,
        "k" => 3,
        "M" => 6,
        "G" => 9,
        "T" => 12,
        "P" => 15,
        "E" => 18,
        _ => 0,
    };
    (power, 1)
}

/// A number in decimal digits, times a factor, by long multiplication.
fn times(digits: &[u8], factor: u64) -> Vec<u8> {
    let mut product = Vec::new();
    let mut carry = 0_u128;
    for digit in digits.iter().rev() {
        carry += u128::from(*digit) * u128::from(factor);
        product.push(last_digit(carry));
        carry /= 10;
    }
    while carry > 0 {
        product.push(last_digit(carry));
        carry /= 10;
    }
    product.reverse();
    product
}

fn last_digit(number: u128) -> u8 {
    u8::try_from(number % 10).unwrap_or_default()
}

/// The number of these digits, times a power of ten, rounded up to a whole one and capped.
fn rounded_up(digits: &[u8], power: i32) -> i128 {
    let first = digits.iter().position(|digit| *digit != 0).unwrap_or(digits.len());
    let digits = &digits[first..];
    if digits.is_empty() {
        return 0;
    }
    let shift = usize::try_from(power.unsigned_abs()).unwrap_or(usize::MAX);
    let (kept, zeros, is_up) = if power >= 0 {
        (digits, shift, false)
    } else {
        let (kept, dropped) = digits.split_at(digits.len().saturating_sub(shift));
        (kept, 0, dropped.iter().any(|digit| *digit != 0))
    };
    if kept.len() + zeros > LARGEST_DIGITS {
        return LARGEST;
    }
    let number = kept.iter().fold(0_i128, |number, digit| number * 10 + i128::from(*digit));
    let number = (0..zeros).fold(number, |number, _| number * 10) + i128::from(is_up);
    number.min(LARGEST)
}
