// The page of policies: how often each is called, how long it takes, and what it answers.

import { address, filter, parameters } from "./address.js";
import { badge, el, field, select, table } from "./dom.js";
import { counted, difference, duration, quantile, share, significant } from "./numbers.js";
import { read } from "./session.js";

const INTERVAL = 5_000;
const KEPT = 13;
const STEP = 200;

const PERIODS = [["", "since the start"], ["minute", "last minute"]];

const COLUMNS = [
  { key: "name", label: "Policy", of: (each) => each.name, text: (each) => each.name },
  { key: "phase", label: "Phase", of: (each) => each.phase, text: (each) => each.phase },
  { key: "rate", label: "Rate", of: (each) => each.rate ?? -1, text: (each) => (each.rate === null ? "–" : `${significant(each.rate)}/s`) },
  { key: "p50", label: "p50", of: (each) => each.p50 ?? -1, text: (each) => duration(each.p50) },
  { key: "p99", label: "p99", of: (each) => each.p99 ?? -1, text: (each) => duration(each.p99) },
  { key: "answers", label: "Answers", of: (each) => each.answers, text: (each) => each.answers.toLocaleString("en") },
  { key: "denials", label: "Denials", of: (each) => each.denials, text: (each) => each.denials.toLocaleString("en") },
  { key: "failures", label: "Failures", of: (each) => each.failures, text: (each) => each.failures.toLocaleString("en") },
  { key: "open", label: "Failed open", of: (each) => each.open, text: (each) => each.open.toLocaleString("en") },
  { key: "hits", label: "Cache hits", of: (each) => each.hits ?? -1, text: (each) => (each.lookups === null ? "no cache" : share(each.saved, each.lookups)) },
];

const nameOf = (policy) => `${policy.phase} ${policy.name}`;

/** The policies of the last record with their numbers since an earlier one; without it, since the start. */
export function measured(after, before) {
  const earlier = new Map((before?.policies ?? []).map((policy) => [nameOf(policy), policy]));
  return after.policies.map((policy) => {
    const old = earlier.get(nameOf(policy));
    const verdicts = difference(policy.verdicts, old?.verdicts);
    const durations = difference(policy.durations, old?.durations);
    const answers = verdicts.allow + verdicts.deny + verdicts.failure;
    const lookups = policy.lookups === null ? null : difference(policy.lookups, old?.lookups);
    const saved = policy.hits === null ? null : difference(policy.hits, old?.hits);
    return {
      ...policy,
      answers,
      denials: verdicts.deny,
      failures: verdicts.failure,
      open: difference(policy.failedOpen, old?.failedOpen),
      p50: quantile(0.5, after.buckets, durations),
      p99: quantile(0.99, after.buckets, durations),
      lookups,
      saved,
      hits: lookups ? saved / lookups : null,
    };
  });
}

/** The answers of each policy per second between two records; null without two. */
function withRates(policies, records) {
  const after = records.at(-1);
  const before = records.at(-3) ?? records[0];
  const recent = after === before ? null : new Map(measured(after, before).map((policy) => [nameOf(policy), policy.answers]));
  return policies.map((policy) => ({ ...policy, rate: recent && recent.get(nameOf(policy)) / (after.at - before.at) }));
}

function sorted(policies, key, descending) {
  const column = COLUMNS.find((each) => each.key === key);
  if (!column) return policies;
  const compare = (one, other) => (typeof one === "string" ? one.localeCompare(other) : one - other);
  return policies.toSorted((one, other) => (descending ? -1 : 1) * compare(column.of(one), column.of(other)));
}

/** The name of a policy, which leads to the reviews that it denied, or in which it failed. */
function name(policy) {
  return el("a", { href: address({ policy: policy.name }) }, policy.name);
}

function cells(policy) {
  const marks = [
    policy.available ? null : badge("cannot be called", "failed"),
    policy.mode === "enforce" ? null : badge(policy.mode, "open"),
  ];
  return COLUMNS.map((column, index) =>
    index
      ? el("td", { class: index > 1 ? "number" : null }, column.text(policy))
      : el("th", { scope: "row" }, name(policy), marks.map((mark) => mark && [" ", mark]), el("div", { class: "code muted" }, policy.place)),
  );
}

/** Show the page. Returns a function that ends it. */
export function show(main) {
  let records = [];
  let most = STEP;
  let failed = "";
  const heads = COLUMNS.map((column, index) =>
    el("th", { scope: "col", class: index > 1 ? "number" : null }, el("button", { type: "button", class: "sort", click: () => sortBy(column.key) }, column.label)),
  );
  const view = table("Policies", heads, []);
  const body = view.querySelector("tbody");
  const count = el("p", { class: "muted", role: "status" });
  const more = el("button", { type: "button", hidden: true, click: () => { most += STEP; refresh(); } }, `Show ${STEP} more`);

  function sortBy(key) {
    const { sort = "", order = "" } = parameters();
    filter({ sort: key, order: sort === key && order !== "up" ? "up" : "" });
    refresh();
  }

  function refresh() {
    const { q = "", period = "", sort = "", order = "" } = parameters();
    heads.forEach((head, index) => {
      const active = COLUMNS[index].key === sort;
      if (active) head.setAttribute("aria-sort", order === "up" ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
    if (!records.length) return;
    const all = withRates(measured(records.at(-1), period ? records[0] : null), records);
    const words = q.toLowerCase().split(/\s+/);
    const chosen = all.filter((policy) => words.every((word) => `${policy.name} ${policy.worker} ${policy.phase}`.toLowerCase().includes(word)));
    const shown = sorted(chosen, sort, order !== "up").slice(0, most);
    update(shown);
    more.hidden = shown.length === chosen.length;
    count.textContent = failed || `${shown.length} of ${counted(all.length, "policy", "policies")} shown${chosen.length === all.length ? "" : `, ${chosen.length} match`}.`;
  }

  // Rows are kept and only cells that differ change, so that the focus and a screen reader's place stay.
  function update(shown) {
    while (body.rows.length > shown.length) body.lastElementChild.remove();
    shown.forEach((policy, index) => {
      const fresh = cells(policy);
      const row = body.rows[index] ?? body.appendChild(el("tr"));
      if (row.cells.length) {
        [...row.cells].forEach((cell, place) => {
          if (!cell.isEqualNode(fresh[place])) cell.replaceWith(fresh[place]);
        });
      } else row.append(...fresh);
    });
  }

  async function poll() {
    try {
      records = [...records, { ...(await read("api/policies")), at: performance.now() / 1000 }].slice(-KEPT);
      failed = "";
    } catch (error) {
      failed = `The numbers are not up to date: ${error.message}`;
    }
    refresh();
    if (failed) count.textContent = failed;
  }

  const { q = "", period = "" } = parameters();
  main.append(
    el("h2", {}, "Policies"),
    el(
      "form",
      { role: "search", "aria-label": "Filter policies", submit: (event) => event.preventDefault() },
      field("Search", el("input", { type: "search", name: "q", value: q, placeholder: "policy, worker, phase", input: (event) => { filter({ q: event.target.value }); refresh(); } })),
      field("Numbers", select(PERIODS, period, (value) => { filter({ period: value }); refresh(); })),
    ),
    count,
    view,
    more,
    el("p", { class: "muted" }, "Rate: of the last 10 seconds. p50 and p99: estimated from the histogram of the policy's calls. Cache hits: verdicts from memory, Redis or an equal open call."),
  );
  refresh();
  poll();
  const timer = setInterval(poll, INTERVAL);
  return () => clearInterval(timer);
}
