//! The JSON parser: recursive descent over bytes, with serde_json for strings.

use std::fmt::{self, Display, Formatter};

use super::{Json, Map, Number};

/// The most levels of nesting. The gateway rejects a review with more than 256 levels, and a level takes some hundred
/// bytes of a thread's stack of 2 MiB.
const DEEPEST: usize = 512;

/// A text is not JSON: what was expected, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    expected: &'static str,
    at: usize,
}

impl Display for JsonError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "expected {} at byte {}", self.expected, self.at)
    }
}

impl std::error::Error for JsonError {}

/// Parses a text of one value.
pub(super) fn read(text: &str) -> Result<Json, JsonError> {
    let mut reader = Reader { text, bytes: text.as_bytes(), at: 0 };
    let value = reader.value(DEEPEST)?;
    match reader.next() {
        None => Ok(value),
        Some(_) => Err(reader.expected("the end")),
    }
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn value(&mut self, levels: usize) -> Result<Json, JsonError> {
        match self.next() {
            Some(b'{') => self.object(levels),
            Some(b'[') => self.array(levels),
            Some(b'"') => self.string().map(Json::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            _ => Err(self.expected("a value")),
        }
    }

    fn object(&mut self, levels: usize) -> Result<Json, JsonError> {
        let below = self.below(levels)?;
        let mut members = Map::new();
        if self.next() == Some(b'}') {
            self.at += 1;
            return Ok(Json::Object(members));
        }
        loop {
            if self.next() != Some(b'"') {
                return Err(self.expected("a member's name"));
            }
            let name = self.string()?;
            self.take(b':', "a colon")?;
            members.insert(name, self.value(below)?);
            if !self.goes_on(b'}', "a comma or the object's end")? {
                return Ok(Json::Object(members));
            }
        }
    }

    fn array(&mut self, levels: usize) -> Result<Json, JsonError> {
        let below = self.below(levels)?;
        let mut elements = Vec::new();
        if self.next() == Some(b']') {
            self.at += 1;
            return Ok(Json::Array(elements));
        }
        loop {
            elements.push(self.value(below)?);
            if !self.goes_on(b']', "a comma or the array's end")? {
                return Ok(Json::Array(elements));
            }
        }
    }

    /// Enters a container; returns how many levels are left below it.
    fn below(&mut self, levels: usize) -> Result<usize, JsonError> {
        let below = levels.checked_sub(1).ok_or_else(|| self.expected("no more than 512 levels"))?;
        self.at += 1;
        Ok(below)
    }

    /// Whether a comma follows, and not the container's end.
    fn goes_on(&mut self, end: u8, expected: &'static str) -> Result<bool, JsonError> {
        match self.next() {
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(found) if found == end => {
                self.at += 1;
                Ok(false)
            }
            _ => Err(self.expected(expected)),
        }
    }

    fn string(&mut self) -> Result<String, JsonError> {
        let start = self.at;
        let mut end = start + 1;
        loop {
            match self.bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(_) => end += 1,
                None => return Err(self.expected("a string's end")),
            }
        }
        self.at = end + 1;
        serde_json::from_str(&self.text[start..self.at]).map_err(|_| JsonError { expected: "a string", at: start })
    }

    /// `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?`: RFC 8259, section 6.
    fn number(&mut self) -> Result<Json, JsonError> {
        let start = self.at;
        self.at += usize::from(self.bytes[self.at] == b'-');
        if self.bytes.get(self.at) == Some(&b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.bytes.get(self.at), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(Json::Number(Number::from_text(&self.text[start..self.at])))
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let count = self.bytes[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        if count == 0 { Err(self.expected("a digit")) } else { Ok(()) }
    }

    fn word(&mut self, word: &'static str, value: Json) -> Result<Json, JsonError> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(self.expected(word));
        }
        self.at += word.len();
        Ok(value)
    }

    fn take(&mut self, wanted: u8, expected: &'static str) -> Result<(), JsonError> {
        if self.next() != Some(wanted) {
            return Err(self.expected(expected));
        }
        self.at += 1;
        Ok(())
    }

    /// The next byte that is not white space.
    fn next(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.bytes.get(self.at) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    fn expected(&self, expected: &'static str) -> JsonError {
        JsonError { expected, at: self.at }
    }
}
