//! The outcomes of one stream that are known and not yet written, oldest first.

use std::collections::{HashMap, VecDeque};

use prost::Message;

use crate::contract::review_stream_response::ResponseItem;
use crate::contract::{Outcome, ReviewStreamResponse};
use crate::limits::Limits;

/// What a message needs beside each outcome: an id of up to 10 bytes, and tags and lengths of up to 6 bytes each.
const ENVELOPE_BYTES: usize = 32;

pub(crate) struct Outbox {
    /// None: it was taken back. Its place is skipped when it comes to the front, which costs less than a search: a
    /// message may take back a hundred thousand.
    items: VecDeque<Option<Held>>,
    /// Where the outcome of an id is in `items`, counted from the first that ever was.
    places: HashMap<u64, u64>,
    gone: u64,
    bytes: usize,
    batch_bytes: usize,
    most: usize,
    most_bytes: usize,
}

struct Held {
    id: u64,
    outcome: Outcome,
    size: usize,
}

impl Outbox {
    pub(crate) fn new(limits: &Limits) -> Self {
        let (most, most_bytes) = (limits.in_flight, limits.message_bytes);
        let batch_bytes = limits.batch_bytes.min(limits.message_bytes);
        Self { items: VecDeque::new(), places: HashMap::new(), gone: 0, bytes: 0, batch_bytes, most, most_bytes }
    }

    pub(crate) fn put(&mut self, id: u64, outcome: Outcome) {
        let size = outcome.encoded_len() + ENVELOPE_BYTES;
        self.bytes += size;
        self.places.insert(id, self.gone + self.items.len() as u64);
        self.items.push_back(Some(Held { id, outcome, size }));
    }

    /// Takes an outcome back, if it is not written yet.
    pub(crate) fn take_back(&mut self, id: u64) {
        let Some(place) = self.places.remove(&id) else { return };
        let index = usize::try_from(place - self.gone).unwrap_or(usize::MAX);
        if let Some(held) = self.items.get_mut(index).and_then(Option::take) {
            self.bytes -= held.size;
        }
        self.skip();
    }

    /// Lets go of what was taken back and is in front.
    fn skip(&mut self) {
        while let Some(None) = self.items.front() {
            self.items.pop_front();
            self.gone += 1;
        }
    }

    pub(crate) fn holds(&self, id: u64) -> bool {
        self.places.contains_key(&id)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Whether nothing more is to be read or begun until something is written.
    pub(crate) fn is_full(&self) -> bool {
        self.places.len() > self.most || self.bytes > self.most_bytes
    }

    /// The oldest outcomes that fit one message; the oldest one in any case.
    pub(crate) fn batch(&mut self) -> ReviewStreamResponse {
        let mut batch = ReviewStreamResponse::default();
        let mut room = self.batch_bytes;
        while let Some(Some(held)) = self.items.front() {
            if held.size > room && !batch.items.is_empty() {
                break;
            }
            let Some(Some(Held { id, outcome, size })) = self.items.pop_front() else { break };
            self.gone += 1;
            self.skip();
            room = room.saturating_sub(size);
            self.bytes -= size;
            self.places.remove(&id);
            batch.items.push(ResponseItem { id, outcome: Some(outcome) });
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ids: impl Iterator<Item = u64>) -> Outbox {
        let mut made = Outbox::new(&Limits::default());
        for id in ids {
            made.put(id, Outcome::default());
        }
        made
    }

    fn written(outbox: &mut Outbox) -> Vec<u64> {
        outbox.batch().items.iter().map(|item| item.id).collect()
    }

    /// What is taken back is not written, wherever it stands; the rest is, in its order.
    #[test]
    fn what_is_taken_back_is_not_written() {
        let mut outbox = of(0..6);
        for id in [0, 3, 5, 9] {
            outbox.take_back(id);
        }
        outbox.put(3, Outcome::default());
        assert_eq!(written(&mut outbox), [1, 2, 4, 3]);
        assert!(outbox.is_empty());
        assert_eq!(outbox.bytes, 0);
        outbox.put(7, Outcome::default());
        outbox.take_back(7);
        assert!(outbox.is_empty() && outbox.items.is_empty());
    }

    /// A search for each of so many would take hours.
    #[test]
    fn a_million_are_taken_back_backwards() {
        let mut outbox = of(0..1_000_000);
        for id in (0..1_000_000).rev() {
            outbox.take_back(id);
        }
        assert!(outbox.is_empty() && outbox.items.is_empty());
        assert_eq!(outbox.bytes, 0);
    }
}
