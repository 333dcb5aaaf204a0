// The page of recent reviews: rates, durations and a list that grows while you look.

import { address, filter, parameters } from "./address.js";
import { durationChart, rateChart } from "./charts.js";
import { badge, el, field, select, table } from "./dom.js";
import { clock, counted, difference, duration, quantile, significant } from "./numbers.js";
import { keyOf, listen, store } from "./store.js";

const MOST_ROWS = 200;
const WINDOW = 10;

const OUTCOMES = [["", "all outcomes"], ["allowed", "allowed"], ["denied", "denied"], ["failed", "failed"], ["failed-open", "failed open"], ["canceled", "canceled"]];
const PHASES = [["", "both phases"], ["mutating", "mutating"], ["validating", "validating"]];

// A uid of the API server's: it may be of a review that is not in the list any more.
const UID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** What a review is about: pods team-a/web. */
export function subject(review) {
  const place = [review.namespace, review.name].filter(Boolean).join("/");
  const resource = review.group ? `${review.resource}.${review.group}` : review.resource;
  return `${review.operation} ${resource}${place ? ` ${place}` : ""}${review.dryRun ? " (dry run)" : ""}`;
}

/** Whether the filters of the address let a review through. */
export function matches(review, { q = "", outcome = "", phase = "", policy = "" }) {
  if (policy && !review.denied.includes(policy) && !review.failed.includes(policy)) return false;
  if (phase && review.phase !== phase) return false;
  if (outcome === "failed-open" ? !review.failedOpen.length : outcome && review.outcome !== outcome) return false;
  const text = [review.uid, subject(review), review.user, ...review.denied, ...review.failed, ...review.changed].join(" ").toLowerCase();
  return q.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

function effects(review) {
  const words = [
    ["denied by", review.denied],
    ["failed:", review.failed],
    ["changed by", review.changed],
  ];
  const said = words.filter(([, names]) => names.length).map(([verb, names]) => `${verb} ${names.join(", ")}`);
  return said.join("; ") || (review.matched ? `${counted(review.matched, "policy", "policies")}, no change` : "no policy matches");
}

function row(review) {
  return el(
    "tr",
    {},
    el("td", { class: "number" }, clock(review.time)),
    el("td", {}, badge(review.outcome), review.failedOpen.length ? [" ", badge("failed open", "open")] : ""),
    el("td", {}, el("a", { href: address({ page: "review", uid: review.uid }) }, subject(review))),
    el("td", {}, review.phase),
    el("td", {}, review.user),
    el("td", {}, effects(review)),
    el("td", { class: "number" }, duration(review.milliseconds / 1000)),
  );
}

/** The numbers of the last seconds in words. */
function figures() {
  const after = store.numbers.at(-1);
  const before = store.numbers.at(-1 - WINDOW) ?? store.numbers[0];
  if (!after || after === before) return "Rates follow in a second.";
  const seconds = after.time - before.time;
  const counts = difference(after.outcomes, before.outcomes);
  const total = counts.allowed + counts.denied + counts.failed;
  const recent = difference(after.durations, before.durations);
  const lasting = total ? `, p50 ${duration(quantile(0.5, after.buckets, recent))}, p99 ${duration(quantile(0.99, after.buckets, recent))}` : "";
  return `Last ${Math.round(seconds)} s: ${significant(total / seconds)} reviews/s, ${counts.denied} denied, ${counts.failed} failed${lasting}. Since the start: ${counted(after.outcomes.allowed + after.outcomes.denied + after.outcomes.failed, "review")}.`;
}

/** Show the page. Returns a function that ends it. */
export function show(main) {
  const rows = new Map();
  const body = table("Recent reviews", ["Time (UTC)", "Outcome", "Request", "Phase", "User", "Policies", ["Duration", "number"]], []);
  const list = body.querySelector("tbody");
  const words = el("p", { class: "figures" });
  const count = el("p", { class: "muted", role: "status" });
  const hint = el("p", {});
  const rate = rateChart(() => store.numbers);
  // While the list is paused, the reviews that it had then.
  let paused = null;
  const reviews = () => paused ?? store.reviews;
  const scatter = durationChart(() => reviews().slice(0, MOST_ROWS));

  function refresh() {
    const chosen = reviews().filter((review) => matches(review, parameters())).slice(0, MOST_ROWS);
    const wanted = new Set(chosen.map(keyOf));
    for (const [key, each] of rows) {
      if (!wanted.has(key)) {
        each.remove();
        rows.delete(key);
      }
    }
    let next = list.firstChild;
    for (const review of chosen) {
      const key = keyOf(review);
      if (!rows.has(key)) rows.set(key, row(review));
      const each = rows.get(key);
      if (each === next) next = each.nextSibling;
      else list.insertBefore(each, next);
    }
    const { q = "", policy = "" } = parameters();
    hint.replaceChildren(
      policy && `Only reviews that ${policy} denied, or in which it failed. `,
      !chosen.length && reviews().length ? "No review matches. " : "",
      policy || (!chosen.length && reviews().length) ? el("a", { href: address({}) }, "Clear the filters") : "",
      !chosen.length && UID.test(q) ? el("a", { href: address({ page: "review", uid: q }) }, `Open the review ${q}`) : "",
    );
    const left = store.skipped ? `; ${counted(store.skipped, "review")} not listed, because there are too many` : "";
    count.textContent = reviews().length
      ? `${chosen.length} of ${counted(reviews().length, "recent review")} shown${left}.`
      : "No review yet. Send one, and it appears here.";
    scatter.update();
  }

  function changed(values) {
    filter(values);
    refresh();
  }

  const { q = "", outcome = "", phase = "" } = parameters();
  const pause = el("button", {
    type: "button",
    "aria-pressed": "false",
    click: () => {
      paused = paused ? null : store.reviews;
      pause.setAttribute("aria-pressed", String(paused !== null));
      refresh();
    },
  }, "Pause the list");
  main.append(
    el("h2", {}, "Reviews"),
    words,
    el("p", { class: "legend" }, ["allowed", "denied", "failed"].map((outcome) => [badge(outcome), " "])),
    el("div", { class: "charts" }, rate.element, scatter.element),
    el(
      "form",
      { role: "search", "aria-label": "Filter reviews", submit: (event) => event.preventDefault() },
      field("Search", el("input", { type: "search", name: "q", value: q, placeholder: "user, namespace, name, policy, uid", input: (event) => changed({ q: event.target.value }) })),
      field("Outcome", select(OUTCOMES, outcome, (value) => changed({ outcome: value }))),
      field("Phase", select(PHASES, phase, (value) => changed({ phase: value }))),
      pause,
    ),
    count,
    hint,
    body,
  );
  rate.mount();
  scatter.mount();
  refresh();
  words.textContent = figures();
  const ends = [
    listen("reviews", () => paused || refresh()),
    listen("numbers", () => {
      words.textContent = figures();
      rate.update();
    }),
    rate.destroy,
    scatter.destroy,
  ];
  return () => ends.forEach((end) => end());
}
