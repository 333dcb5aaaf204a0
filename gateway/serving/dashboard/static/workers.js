// The page of workers: which can be called, and in which versions they are.

import { badge, el, table } from "./dom.js";
import { counted } from "./numbers.js";
import { listen, store } from "./store.js";

const EVENTS = { circuit_opened: "circuit opened", stream_broke: "streams broken", in_flight: "calls refused: in flight", backlog: "calls refused: backlog" };

/** The health of a worker (worker_states.py) in words, and their colour. */
export const HEALTH = {
  healthy: ["healthy", "allowed"],
  undescribed: ["not described", "failed"],
  unreachable: ["cannot be reached", "failed"],
  uncallable: ["cannot be called", "failed"],
  unknown: ["no connection is kept", "neutral"],
};

function row(worker) {
  const events = Object.entries(worker.events).map(([name, count]) => `${EVENTS[name] ?? name.replaceAll("_", " ")}: ${count.toLocaleString("en")}`);
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, worker.name),
    el("td", {}, badge(...HEALTH[worker.health]), worker.problem && ` ${worker.problem}`),
    el("td", {}, worker.versions.length ? worker.versions.map((version) => version || "none given").join(", ") : "–", worker.versions.length > 1 ? [" ", badge("two versions", "open")] : ""),
    el("td", { class: "number" }, worker.connections ?? "–"),
    el("td", { class: "number" }, worker.policies),
    el("td", {}, worker.transport),
    el("td", { class: "code" }, worker.target),
    el("td", {}, events.join(", ") || "none"),
  );
}

/** Show the page. Returns a function that ends it. */
export function show(main) {
  const view = table("Workers", ["Worker", "Health", "Version", ["Connections", "number"], ["Policies", "number"], "Transport", "Target", "Events since the start"], []);
  const count = el("p", { class: "muted" });
  function refresh() {
    if (!store.state) return;
    const { workers, moreWorkers } = store.state;
    const text = `${counted(workers.length + moreWorkers, "worker")}${moreWorkers ? `, the first ${workers.length} shown` : ""}.`;
    if (count.textContent !== text) count.textContent = text;
    view.querySelector("tbody").replaceChildren(...workers.map(row));
  }
  main.append(el("h2", {}, "Workers"), count, view);
  refresh();
  return listen("state", refresh);
}
