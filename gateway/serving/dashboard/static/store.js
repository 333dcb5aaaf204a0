// What the gateway has sent: its state, recent reviews, and the numbers of the last minutes.

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
 * What to do with each event of a new connection: see live_data.py. The stream of a gateway with several processes may
 * have the events of all: this page shows the process whose events come first.
 */
export function receiver() {
  let followed = null;
  const ours = (process) => (followed ??= process) === process;
  return Object.fromEntries(Object.entries(receive).map(([name, take]) => [name, (data) => ours(data.process) && take(data)]));
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
    store.reviews = [...added.toReversed(), ...store.reviews].slice(0, MOST_REVIEWS);
    store.skipped += skipped;
    notify("reviews", added);
  },

  numbers(numbers) {
    store.numbers = [...store.numbers, numbers].slice(-MOST_NUMBERS);
    notify("numbers", numbers);
  },
};
