// The page of the gateway's health: readiness, certificate, configuration, and the policies that cannot be called.

import { badge, descriptions, el, table } from "./dom.js";
import { counted, daysUntil, utc } from "./numbers.js";
import { listen, store } from "./store.js";

/** When the certificate expires: "in 12 days (2026-12-05)". */
export function expiry(state) {
  if (!state.certificateExpires) return "unknown";
  const days = daysUntil(state.certificateExpires);
  const date = new Date(state.certificateExpires * 1000).toISOString().slice(0, 10);
  return `${days < 0 ? "expired" : `in ${counted(days, "day")}`} (${date})`;
}

function check(each) {
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, each.name),
    el("td", {}, each.problem === null ? badge("ok", "allowed") : badge("failed")),
    el("td", {}, [each.problem, each.note].filter(Boolean).join("; ")),
  );
}

function unavailable(each) {
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, each.policy),
    el("td", {}, each.phase),
    el("td", {}, each.lastGood ? badge("last good version is called", "open") : badge("fails", "failed")),
    el("td", {}, each.reason),
    el("td", {}, each.message),
    el("td", { class: "code" }, each.place),
  );
}

function texts(title, none, lines) {
  return [el("h3", {}, title), lines.length ? el("ul", { class: "code" }, lines.map((line) => el("li", {}, line))) : el("p", { class: "muted" }, none)];
}

function sections(state) {
  return [
    descriptions([
      ["Replica", state.replica],
      ["Version", state.version],
      ["Certificate expires", expiry(state)],
      ["Configuration loaded", utc(state.loaded)],
      ["Policies", `${state.policies.mutating} mutating, ${state.policies.validating} validating`],
    ]),
    el("h3", {}, "Readiness"),
    table("Readiness checks", ["Check", "Result", "Why"], state.checks.map(check)),
    el("h3", {}, "Policies that cannot be called as configured"),
    state.unavailable.length
      ? table("Policies that cannot be called", ["Policy", "Phase", "Effect", "Reason", "Why, and what to do", "Place"], state.unavailable.map(unavailable))
      : el("p", { class: "muted" }, "None: every policy is called as configured."),
    state.moreUnavailable ? el("p", {}, `${state.moreUnavailable} more; the log has all of them.`) : null,
    texts("Errors of the configuration that was rejected", "None: the configuration read last is in force.", state.rejected),
    texts("Errors of the configuration in force", "None.", state.errors),
    texts("Warnings", "None.", state.warnings),
  ];
}

/** Show the page. Returns a function that ends it. */
export function show(main) {
  const area = el("div", {});
  let shown = "";
  function refresh() {
    const { workers: _workers, failedOpen: _open, lastFailedOpen: _last, ...state } = store.state ?? {};
    const now = JSON.stringify(state);
    // Without a change nothing is replaced, so that a reader keeps its place.
    if (!store.state || now === shown) return;
    shown = now;
    area.replaceChildren(...sections(store.state).flat().filter(Boolean));
  }
  main.append(el("h2", {}, "Health"), area);
  refresh();
  return listen("state", refresh);
}
