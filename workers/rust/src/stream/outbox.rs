//! The outcomes of one stream that are known and not yet written, oldest first.

use std::collections::{HashSet, VecDeque};

use prost::Message;

use crate::contract::review_stream_response::ResponseItem;
use crate::contract::{Outcome, ReviewStreamResponse};
use crate::limits::Limits;

/// What a message needs beside each outcome: an id of up to 10 bytes, and tags and lengths of up to 6 bytes each.
const ENVELOPE_BYTES: usize = 32;

pub(crate) struct Outbox {
    items: VecDeque<(u64, Outcome, usize)>,
    ids: HashSet<u64>,
    bytes: usize,
    batch_bytes: usize,
    most: usize,
    most_bytes: usize,
}

impl Outbox {
    pub(crate) fn new(limits: &Limits) -> Self {
        let (most, most_bytes) = (limits.in_flight, limits.message_bytes);
        let batch_bytes = limits.batch_bytes.min(limits.message_bytes);
        Self { items: VecDeque::new(), ids: HashSet::new(), bytes: 0, batch_bytes, most, most_bytes }
    }

    pub(crate) fn put(&mut self, id: u64, outcome: Outcome) {
        let size = outcome.encoded_len() + ENVELOPE_BYTES;
        self.bytes += size;
        self.ids.insert(id);
        self.items.push_back((id, outcome, size));
    }

    /// Takes an outcome back, if it is not written yet.
    pub(crate) fn take_back(&mut self, id: u64) {
        if self.ids.remove(&id) {
            if let Some(place) = self.items.iter().position(|(held, _, _)| *held == id) {
                self.bytes -= self.items.remove(place).map_or(0, |(_, _, size)| size);
            }
        }
    }

    pub(crate) fn holds(&self, id: u64) -> bool {
        self.ids.contains(&id)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Whether nothing more is to be read or begun until something is written.
    pub(crate) fn is_full(&self) -> bool {
        self.items.len() > self.most || self.bytes > self.most_bytes
    }

    /// The oldest outcomes that fit one message; the oldest one in any case.
    pub(crate) fn batch(&mut self) -> ReviewStreamResponse {
        let mut batch = ReviewStreamResponse::default();
        let mut room = self.batch_bytes;
        while let Some((id, outcome, size)) = self.items.pop_front() {
            if size > room && !batch.items.is_empty() {
                self.items.push_front((id, outcome, size));
                break;
            }
            room = room.saturating_sub(size);
            self.bytes -= size;
            self.ids.remove(&id);
            batch.items.push(ResponseItem { id, outcome: Some(outcome) });
        }
        batch
    }
}
