//! Globs, as in Python's `fnmatch` and shells: `*` is any text, slashes included, `?` any character, `[a-z]` one of a set,
//! `[!a-z]` one of the others. A bracket that is not closed stands for itself.

/// A part of a glob.
enum Part {
    Any,
    One,
    Literal(char),
    OneOf { ranges: Vec<(char, char)>, is_negated: bool },
}

/// Whether a glob matches a whole text. Takes at most time proportional to the product of their lengths.
#[must_use]
pub fn matches(glob: &str, text: &str) -> bool {
    let parts = parts_of(glob);
    let text: Vec<char> = text.chars().collect();
    let (mut part, mut at) = (0, 0);
    let mut last_any: Option<(usize, usize)> = None; // where to continue after a mismatch behind the last `*`
    while at < text.len() {
        match parts.get(part) {
            Some(Part::Any) => {
                last_any = Some((part + 1, at));
                part += 1;
            }
            Some(other) if other.takes(text[at]) => {
                part += 1;
                at += 1;
            }
            _ => match last_any {
                Some((next, from)) => {
                    last_any = Some((next, from + 1));
                    (part, at) = (next, from + 1);
                }
                None => return false,
            },
        }
    }
    parts[part..].iter().all(|rest| matches!(rest, Part::Any))
}

impl Part {
    fn takes(&self, found: char) -> bool {
        match self {
            Self::Any | Self::One => true,
            Self::Literal(wanted) => *wanted == found,
            Self::OneOf { ranges, is_negated } => {
                ranges.iter().any(|(first, last)| (*first..=*last).contains(&found)) != *is_negated
            }
        }
    }
}

fn parts_of(glob: &str) -> Vec<Part> {
    let glob: Vec<char> = glob.chars().collect();
    let mut parts = Vec::new();
    let mut at = 0;
    while at < glob.len() {
        let found = glob[at];
        at += 1;
        parts.push(match found {
            '*' => Part::Any,
            '?' => Part::One,
            '[' => match end_of_set(&glob, at) {
                Some(end) => {
                    let set = &glob[at..end];
                    at = end + 1;
                    one_of(set)
                }
                None => Part::Literal('['),
            },
            other => Part::Literal(other),
        });
    }
    parts
}

/// The index of the closing bracket. A first `]` is a member of the set.
fn end_of_set(glob: &[char], start: usize) -> Option<usize> {
    let mut at = start;
    at += usize::from(glob.get(at) == Some(&'!'));
    at += usize::from(glob.get(at) == Some(&']'));
    (at..glob.len()).find(|place| glob[*place] == ']')
}

fn one_of(set: &[char]) -> Part {
    let (is_negated, mut rest) = match set.split_first() {
        Some(('!', rest)) => (true, rest),
        _ => (false, set),
    };
    let mut ranges = Vec::new();
    while let Some(first) = rest.first() {
        if let [first, '-', last, ..] = rest {
            ranges.push((*first, *last)); // a reversed range matches nothing
            rest = &rest[3..];
        } else {
            ranges.push((*first, *first));
            rest = &rest[1..];
        }
    }
    Part::OneOf { ranges, is_negated }
}
