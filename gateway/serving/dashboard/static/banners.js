// Warnings above every page: what an operator must know, whatever the page is about.

import { address } from "./address.js";
import { el } from "./dom.js";
import { counted, daysUntil } from "./numbers.js";

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
    found.push([`Fail-open: ${counted(total, "failure was", "failures were")} ignored since the start, and the request passed unjudged by ${names.join(", ")}${more}`, "open"]);
  }
  if (state.rejected.length) found.push([`The configuration read last has ${counted(state.rejected.length, "error")} and is not in force; the last good one is`, "health"]);
  const failing = state.unavailable.filter((each) => !each.lastGood).length + state.moreUnavailable;
  if (failing) found.push([`${counted(failing, "policy", "policies")} cannot be called`, "health"]);
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
