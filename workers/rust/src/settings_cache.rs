//! The settings that were used last, by policy and bytes, bounded in number and in the size of their text.
//!
//! "Equal settings are equal bytes" (the contract), so converted settings are cached by their bytes. Invalid settings are
//! not cached: they are checked, and their errors reported, in each call.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use crate::limits::Limits;
use crate::settings::{Converted, InvalidSettings, SettingsType};

pub(crate) struct SettingsCache {
    most: usize,
    most_bytes: usize,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    /// By the digest of policy and text; both are compared on a hit.
    by_key: HashMap<u64, Entry>,
    bytes: usize,
    uses: u64,
}

struct Entry {
    policy: String,
    text: Bytes,
    settings: Converted,
    used: u64,
}

impl SettingsCache {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { most: limits.settings_kept, most_bytes: limits.settings_kept_bytes, entries: Mutex::default() }
    }

    /// The settings of a policy from their text, converted if they are not cached; or all errors in them.
    pub(crate) fn read(&self, policy: &str, kind: &SettingsType, text: &Bytes) -> Result<Converted, InvalidSettings> {
        let key = key_of(policy, text);
        if let Some(settings) = self.locked(|entries| entries.found(key, policy, text)) {
            return Ok(settings);
        }
        let (settings, _) = kind.read(text)?;
        // A copy: the text is a slice of a message, which it would keep in memory.
        let text = Bytes::copy_from_slice(text);
        let entry = Entry { policy: policy.to_owned(), text, settings: settings.clone(), used: 0 };
        self.locked(|entries| entries.add(key, entry, self.most, self.most_bytes));
        Ok(settings)
    }

    fn locked<R>(&self, work: impl FnOnce(&mut Entries) -> R) -> R {
        work(&mut self.entries.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Entries {
    fn found(&mut self, key: u64, policy: &str, text: &Bytes) -> Option<Converted> {
        self.uses += 1;
        let entry = self.by_key.get_mut(&key).filter(|entry| entry.policy == policy && entry.text == text)?;
        entry.used = self.uses;
        Some(entry.settings.clone())
    }

    fn add(&mut self, key: u64, entry: Entry, most: usize, most_bytes: usize) {
        self.bytes += entry.text.len();
        let entry = Entry { used: self.uses, ..entry };
        if let Some(before) = self.by_key.insert(key, entry) {
            self.bytes -= before.text.len();
        }
        while self.by_key.len() > most || self.bytes > most_bytes {
            let oldest = self.by_key.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| *key);
            let Some(dropped) = oldest.and_then(|key| self.by_key.remove(&key)) else { break };
            self.bytes -= dropped.text.len();
        }
    }
}

fn key_of(policy: &str, text: &Bytes) -> u64 {
    let mut hasher = DefaultHasher::new();
    (policy, text).hash(&mut hasher);
    hasher.finish()
}
