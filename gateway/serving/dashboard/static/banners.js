// Warnings above every page: what an operator must know, whatever the page is about.

import { address } from "./address.js";
import { el } from "./dom.js";
import { counted, daysUntil, utc } from "./numbers.js";
import { HEALTH } from "./workers.js";

const FEW_DAYS = 21;
const NAMED = 5;

/** The warnings of a state: [text, the page with more]. */
export function warnings(state) {
  const found = [];
  for (const check of state.checks) if (check.problem !== null) found.push([`Not ready: ${check.problem}`, "health"]);
  if (state.failedOpen.length) {
    const total = state.failedOpen.reduce((sum, each) => sum + each.count, 0);
    const names = state.failedOpen.slice(0, NAMED).map((each) => `${each.policy} (${each.count})`);
    const more = state.failedOpen.length > NAMED ? ` and ${state.failedOpen.length - NAMED} more policies` : "";
    const last = state.lastFailedOpen ? `, the last at ${utc(state.lastFailedOpen)}` : "";
    found.push([`Fail-open: ${counted(total, "failure was", "failures were")} ignored since the start (failurePolicy Ignore)${last}: ${names.join(", ")}${more}`, "open"]);
  }
  if (state.rejected.length) found.push([`The configuration read last has ${counted(state.rejected.length, "error")} and is not in force; the last good one is`, "health"]);
  if (state.failing) found.push([`${counted(state.failing, "policy", "policies")} cannot be called`, "health"]);
  const lost = state.workers.filter((worker) => worker.failing);
  for (const { name, health, failing } of lost.slice(0, NAMED)) {
    found.push([`Worker ${name} ${HEALTH[health][0]}; its ${failing === 1 ? "policy fails" : `${counted(failing, "policy", "policies")} fail`}`, "workers"]);
  }
  if (lost.length > NAMED) found.push([`${counted(lost.length - NAMED, "more worker")} cannot be called`, "workers"]);
  if (state.certificateExpires) {
    const days = daysUntil(state.certificateExpires);
    if (days < FEW_DAYS) found.push([days < 0 ? "The TLS certificate has expired" : `The TLS certificate expires in ${counted(days, "day")}`, "health"]);
  }
  return found;
}

let shown = "";

/** Show them in an element, if they have changed. */
export function showWarnings(area, state) {
  const found = warnings(state);
  if (JSON.stringify(found) === shown) return;
  shown = JSON.stringify(found);
  const target = (page) => (page === "open" ? address({ outcome: "failed-open" }) : address({ page }));
  area.replaceChildren(...found.map(([text, page]) => el("p", { class: "banner" }, el("strong", {}, "Warning: "), text, ". ", el("a", { href: target(page) }, page === "open" ? "Show the reviews" : "Show why"))));
}
