// What the gateway has sent: its state, recent reviews, and the numbers of the last minutes.

import { sum } from "./numbers.js";

const MOST_REVIEWS = 500;
const MOST_NUMBERS = 300;

const listeners = { state: new Set(), reviews: new Set(), numbers: new Set() };

export const store = { state: null, reviews: [], numbers: [], skipped: 0 };

/** Call a listener with each new value of a kind, until the returned function is called. */
export function listen(kind, listener) {
  listeners[kind].add(listener);
  return () => listeners[kind].delete(listener);
}

function notify(kind, value) {
  for (const listener of [...listeners[kind]]) listener(value);
}

/** Identifies a review: the API server sends the same uid to each phase, and again if it calls again. */
export function keyOf(review) {
  return `${review.uid} ${review.id}`;
}

/**
 * What to do with each event of a new connection: see live_data.py. The stream of a gateway with several processes has
 * the events of all: their reviews are one list, their numbers are added up, and the rest is that of the first.
 */
export function receiver() {
  const states = new Map();
  const numbers = new Map();
  let first = null;
  return {
    state(state) {
      first ??= state.process;
      states.set(state.process, state);
      const all = [...states.values()];
      const lastFailedOpen = all.map((each) => each.lastFailedOpen).filter(Boolean).sort().at(-1);
      receive.state({ ...states.get(first), failedOpen: ignored(all), lastFailedOpen });
    },
    reviews: receive.reviews,
    numbers(record) {
      numbers.set(record.process, record);
      if (record.process !== first) return;
      const { outcomes, durations } = [...numbers.values()].map(({ outcomes, durations }) => ({ outcomes, durations })).reduce(sum);
      receive.numbers({ ...record, outcomes, durations });
    },
  };
}

/** The ignored failures of all processes, by policy. */
function ignored(states) {
  const found = new Map();
  for (const each of states.flatMap((state) => state.failedOpen)) {
    const key = `${each.phase} ${each.policy}`;
    found.set(key, { ...each, count: each.count + (found.get(key)?.count ?? 0) });
  }
  return [...found.values()];
}

const receive = {
  state(state) {
    if (store.state && store.state.process !== state.process) {
      // The gateway has restarted: its numbers begin at 0, and it has no details of earlier reviews.
      store.reviews = [];
      store.numbers = [];
      store.skipped = 0;
      notify("reviews", null);
    }
    store.state = state;
    notify("state", state);
  },

  reviews({ reviews, skipped }) {
    const known = new Set(store.reviews.map(keyOf));
    const added = reviews.filter((review) => !known.has(keyOf(review)));
    store.reviews = [...added.toReversed(), ...store.reviews].sort((one, other) => other.time - one.time).slice(0, MOST_REVIEWS);
    store.skipped += skipped;
    notify("reviews", added);
  },

  numbers(numbers) {
    store.numbers = [...store.numbers, numbers].slice(-MOST_NUMBERS);
    notify("numbers", numbers);
  },
};
