//! The unwritten outcomes of one stream, oldest first.

use std::collections::{HashMap, VecDeque};

use prost::Message;

use crate::contract::review_stream_response::ResponseItem;
use crate::contract::{Outcome, ReviewStreamResponse};
use crate::limits::Limits;

/// Bytes of a message besides each outcome: an id of up to 10 bytes, and tags and lengths of up to 6 bytes each.
const ENVELOPE_BYTES: usize = 32;

pub(crate) struct Outbox {
    /// None: a removed outcome, which is skipped when it reaches the front. That costs less than a search: one message may
    /// cancel a hundred thousand calls.
    items: VecDeque<Option<Item>>,
    /// The position of an id's outcome in `items`, counted from the first one of the stream.
    places: HashMap<u64, u64>,
    skipped: u64,
    bytes: usize,
    batch_bytes: usize,
    most: usize,
    most_bytes: usize,
}

struct Item {
    id: u64,
    outcome: Outcome,
    size: usize,
}

impl Outbox {
    pub(crate) fn new(limits: &Limits) -> Self {
        let (most, most_bytes) = (limits.in_flight, limits.message_bytes);
        let batch_bytes = limits.batch_bytes.min(limits.message_bytes);
        Self { items: VecDeque::new(), places: HashMap::new(), skipped: 0, bytes: 0, batch_bytes, most, most_bytes }
    }

    pub(crate) fn put(&mut self, id: u64, outcome: Outcome) {
        let size = outcome.encoded_len() + ENVELOPE_BYTES;
        self.bytes += size;
        self.places.insert(id, self.skipped + self.items.len() as u64);
        self.items.push_back(Some(Item { id, outcome, size }));
    }

    /// Removes an outcome, if it is not written yet.
    pub(crate) fn remove(&mut self, id: u64) {
        let Some(place) = self.places.remove(&id) else { return };
        let index = usize::try_from(place - self.skipped).unwrap_or(usize::MAX);
        if let Some(item) = self.items.get_mut(index).and_then(Option::take) {
            self.bytes -= item.size;
        }
        self.skip();
    }

    /// Drops removed items at the front.
    fn skip(&mut self) {
        while let Some(None) = self.items.front() {
            self.items.pop_front();
            self.skipped += 1;
        }
    }

    pub(crate) fn holds(&self, id: u64) -> bool {
        self.places.contains_key(&id)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Whether unwritten outcomes exceed the limits, so that no call may be read or begun.
    pub(crate) fn is_full(&self) -> bool {
        self.places.len() > self.most || self.bytes > self.most_bytes
    }

    /// The oldest outcomes that fit one message; at least one.
    pub(crate) fn batch(&mut self) -> ReviewStreamResponse {
        let mut batch = ReviewStreamResponse::default();
        let mut room = self.batch_bytes;
        while let Some(Some(item)) = self.items.front() {
            if item.size > room && !batch.items.is_empty() {
                break;
            }
            let Some(Some(Item { id, outcome, size })) = self.items.pop_front() else { break };
            self.skipped += 1;
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

    /// Removed outcomes are not written, whatever their position; the others keep their order.
    #[test]
    fn removed_outcomes_are_not_written() {
        let mut outbox = of(0..6);
        for id in [0, 3, 5, 9] {
            outbox.remove(id);
        }
        outbox.put(3, Outcome::default());
        assert_eq!(written(&mut outbox), [1, 2, 4, 3]);
        assert!(outbox.is_empty());
        assert_eq!(outbox.bytes, 0);
        outbox.put(7, Outcome::default());
        outbox.remove(7);
        assert!(outbox.is_empty() && outbox.items.is_empty());
    }

    /// Removal needs no search: with one, so many would take hours.
    #[test]
    fn a_million_are_removed_backwards() {
        let mut outbox = of(0..1_000_000);
        for id in (0..1_000_000).rev() {
            outbox.remove(id);
        }
        assert!(outbox.is_empty() && outbox.items.is_empty());
        assert_eq!(outbox.bytes, 0);
    }
}
