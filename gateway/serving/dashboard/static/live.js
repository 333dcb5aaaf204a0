// The live stream of server-sent events. EventSource cannot send a token, so this reads the same format with fetch.

import { TokenNeeded, request } from "./session.js";

const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;
// The gateway sends an event each second. A connection that is silent for so long is broken.
const SILENCE = 15_000;

/** Split a buffer of text/event-stream: the events in it as [name, data], and the rest that is not complete. */
export function parse(buffer) {
  const blocks = buffer.split("\n\n");
  const rest = blocks.pop();
  const events = blocks.map((block) => {
    const lines = block.split("\n");
    const value = (name) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? "";
    return [value("event"), JSON.parse(value("data"))];
  });
  return [events, rest];
}

/**
 * Read the stream, and connect again whenever it ends. `receiver()` makes, for each connection, an object with a function
 * for each event; `status(text, live)` is called when the state of the connection changes. It ends with TokenNeeded.
 */
export async function follow(receiver, status) {
  let wait = FIRST_WAIT;
  for (;;) {
    try {
      await readOnce(receiver(), () => {
        wait = FIRST_WAIT;
        status("live", true);
      });
      status("reconnecting: the gateway ended the connection", false);
    } catch (error) {
      if (error instanceof TokenNeeded) throw error;
      status(`reconnecting: ${error.name === "TypeError" ? "the gateway cannot be reached" : error.message}`, false);
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
    wait = Math.min(2 * wait, LONGEST_WAIT);
  }
}

async function readOnce(on, connected) {
  const abort = new AbortController();
  let timer = setTimeout(() => abort.abort(), SILENCE);
  try {
    const reader = (await request("api/live", abort.signal)).body.pipeThrough(new TextDecoderStream()).getReader();
    connected();
    let buffer = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => abort.abort(), SILENCE);
      const [events, rest] = parse(buffer + value);
      buffer = rest;
      for (const [name, data] of events) on[name]?.(data);
    }
  } finally {
    clearTimeout(timer);
    abort.abort();
  }
}
