//! The settings that were converted last, by policy and bytes, bounded in number and in the size of their text.
//!
//! "Equal settings are equal bytes", says the contract, so what was converted is kept by its bytes. What does not convert
//! is not kept: it is not worth a place, and says so again each time.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

use crate::limits::Limits;
use crate::settings::{Converted, InvalidSettings, SettingsType};

pub(crate) struct KeptSettings {
    most: usize,
    most_bytes: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// By the digest of policy and text; what is found is compared.
    entries: HashMap<u64, Entry>,
    bytes: usize,
    uses: u64,
}

struct Entry {
    policy: String,
    text: Bytes,
    settings: Converted,
    used: u64,
}

impl KeptSettings {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { most: limits.settings_kept, most_bytes: limits.settings_kept_bytes, kept: Mutex::default() }
    }

    /// The settings of a policy out of their text, converted only when they are not kept; or all that is wrong with them.
    pub(crate) fn read(&self, policy: &str, kind: &SettingsType, text: &Bytes) -> Result<Converted, InvalidSettings> {
        let key = key_of(policy, text);
        if let Some(settings) = self.locked(|kept| kept.found(key, policy, text)) {
            return Ok(settings);
        }
        let (settings, _) = kind.read(text)?;
        // A copy: the text is a part of a message, which it would keep whole.
        let text = Bytes::copy_from_slice(text);
        let entry = Entry { policy: policy.to_owned(), text, settings: settings.clone(), used: 0 };
        self.locked(|kept| kept.add(key, entry, self.most, self.most_bytes));
        Ok(settings)
    }

    fn locked<R>(&self, work: impl FnOnce(&mut Kept) -> R) -> R {
        work(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Kept {
    fn found(&mut self, key: u64, policy: &str, text: &Bytes) -> Option<Converted> {
        self.uses += 1;
        let entry = self.entries.get_mut(&key).filter(|entry| entry.policy == policy && entry.text == text)?;
        entry.used = self.uses;
        Some(entry.settings.clone())
    }

    fn add(&mut self, key: u64, entry: Entry, most: usize, most_bytes: usize) {
        self.bytes += entry.text.len();
        let entry = Entry { used: self.uses, ..entry };
        if let Some(before) = self.entries.insert(key, entry) {
            self.bytes -= before.text.len();
        }
        while self.entries.len() > most || self.bytes > most_bytes {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| *key);
            let Some(dropped) = oldest.and_then(|key| self.entries.remove(&key)) else { break };
            self.bytes -= dropped.text.len();
        }
    }
}

fn key_of(policy: &str, text: &Bytes) -> u64 {
    let mut hasher = DefaultHasher::new();
    (policy, text).hash(&mut hasher);
    hasher.finish()
}
