// The page of one review: what was decided and why, where the time went, and which policy changed which field.

import { address, parameters } from "./address.js";
import { badge, descriptions, el, table } from "./dom.js";
import { counted, duration, utc } from "./numbers.js";
import { lines, valueOf } from "./object.js";
import { subject } from "./reviews.js";
import { read } from "./session.js";

const COLOURS = 8;

const nameOf = (policy) => `${policy.configuration}/${policy.name}`;

/** The number of each policy that changed a field: its colour, and the number beside its name. */
function writersOf(decision) {
  const names = [...new Set(decision.changedBy.map((each) => each.policy))];
  return new Map(names.map((name, index) => [name, index + 1]));
}

function writer(name, writers) {
  const number = writers.get(name);
  return el("span", { class: `writer writer-${((number - 1) % COLOURS) + 1}` }, el("b", {}, number), ` ${name}`);
}

// ------------------------------------------------------------------------------------------------- the summary

function summary(decision) {
  const { request, status, ledger } = decision;
  return descriptions([
    ["User", request.user],
    ["Groups", request.groups.join(", ")],
    ["Time", utc(decision.time)],
    ["Phase", decision.entry ? `${decision.phase}, entry ${decision.entry}` : decision.phase],
    ["Duration", `${duration(ledger.spentMs / 1000)} of ${duration(ledger.budgetMs / 1000)}`],
    ["Answer", status ? `${status.code} ${status.reason}: ${status.message}` : "allowed"],
    ["Warnings", decision.warnings.length ? el("ul", {}, decision.warnings.map((warning) => el("li", {}, warning))) : ""],
    ["uid", el("code", {}, decision.uid)],
    ["Replica", decision.replica],
    ["Trace", decision.traceId ? el("code", {}, decision.traceId) : ""],
    ["Cut", decision.cuts.join("; ")],
  ]);
}

// ----------------------------------------------------------------------------------------------- the waterfall

function bar(kind, start, end, total) {
  const element = el("span", { class: `bar ${kind}` });
  element.style.setProperty("--start", `${(100 * start) / total}%`);
  element.style.setProperty("--length", `${Math.max((100 * (end - start)) / total, 0.4)}%`);
  return element;
}

function step(name, details, bars, start, spent) {
  return el(
    "tr",
    {},
    el("th", { scope: "row", class: "step" }, name),
    el("td", { class: "how" }, details),
    el("td", { class: "number" }, duration(start / 1000)),
    el("td", { class: "number" }, duration(spent / 1000)),
    el("td", { class: "bars", "aria-hidden": "true" }, bars),
  );
}

function policyStep(policy, total) {
  const { call } = policy;
  const answered = call && (call.answeredMs ?? policy.endedMs);
  const ownCall = call && policy.source !== "memo";
  const start = ownCall ? Math.min(call.calledMs, policy.startedMs) : policy.startedMs;
  const end = ownCall ? Math.max(answered, policy.endedMs) : policy.endedMs;
  const bars = [bar(`turn ${policy.verdict}`, policy.startedMs, policy.endedMs, total)];
  if (ownCall) bars.unshift(bar(call.prefetched ? "call prefetched" : "call", call.calledMs, answered, total));
  const how = [
    policy.round ? "reinvoked" : "",
    policy.source === "none" ? "not called" : policy.source,
    call?.prefetched ? "called before its turn" : "",
    policy.document ? `${policy.document.size.toLocaleString("en")} bytes` : "",
    policy.version ? `version ${policy.version}` : "",
    policy.mode === "enforce" ? "" : `mode ${policy.mode}`,
  ];
  return step(nameOf(policy), [badge(policy.verdict, policy.failedOpen ? "open" : policy.verdict), " ", how.filter(Boolean).join(", ")], bars, start, end - start);
}

function waterfall(decision) {
  const called = decision.policies.filter((policy) => policy.matched && policy.startedMs !== null);
  const { stages, spentMs } = decision.ledger;
  const total = Math.max(spentMs, ...called.map((policy) => policy.endedMs), 0.001);
  const stage = (each) => step(el("i", {}, each.name), "gateway", bar("stage", each.startMs, each.startMs + each.spentMs, total), each.startMs, each.spentMs);
  const until = stages.findIndex((each) => each.name === "calls");
  const before = until < 0 ? stages : stages.slice(0, until + 1);
  return table(
    "Where the time went",
    ["Step", "What", ["Start", "number"], ["Time", "number"], el("th", { scope: "col", class: "bars", "aria-hidden": "true" }, `0 to ${duration(total / 1000)}`)],
    [...before.map(stage), ...called.map((policy) => policyStep(policy, total)), ...(until < 0 ? [] : stages.slice(until + 1).map(stage))],
  );
}

// ------------------------------------------------------------------------------------------------ the policies

/** A URL of the configuration as a link, if it leads to a page: any other text stays a text. */
function link(text) {
  return /^https?:\/\//.test(text) ? el("a", { href: text, rel: "noreferrer", target: "_blank" }, text) : text;
}

/** The policies that refused, failed, warned, or would have changed something: who, why, where it is configured. */
function reports(decision) {
  const told = decision.policies.filter((policy) => policy.message || policy.warnings.length || policy.conflicts.length || policy.wouldChange.length);
  if (!told.length) return null;
  return told.map((policy) =>
    el(
      "section",
      { class: "report" },
      el("h4", {}, nameOf(policy), " ", badge(policy.failedOpen ? "failed open" : policy.verdict, policy.failedOpen ? "open" : policy.verdict)),
      descriptions([
        ["Reason", policy.reason],
        ["Message", policy.message],
        ["Warnings", policy.warnings.join("; ")],
        ["Conflicts", policy.conflicts.map((each) => `${each.path} with ${each.with.join(", ")} (${each.onConflict})`).join("; ")],
        ["Would change", policy.wouldChange.map((each) => `${each.op} ${each.path}`).join(", ")],
        ["Instead of", policy.insteadOf ? `${policy.insteadOf.reason}: ${policy.insteadOf.message}` : ""],
        ["Cache", policy.cache ? `${policy.cache.result}: ${policy.cache.why}` : ""],
        ["Configured in", policy.place],
        ["Worker", policy.target ? `${policy.worker}, ${policy.target}` : policy.worker],
        ["Contact", policy.contact],
        ["Documentation", link(policy.documentation)],
      ]),
    ),
  );
}

function unmatched(decision) {
  const others = decision.policies.filter((policy) => !policy.matched);
  const reasons = [
    ...others.map((policy) => `${nameOf(policy)}: ${policy.why}`),
    ...decision.unmatched.map((name) => `${name}: rules`),
    ...decision.notReached.map((name) => `${name}: not reached, the request was refused before`),
  ];
  if (!reasons.length) return null;
  return el("details", {}, el("summary", {}, `${counted(reasons.length, "policy", "policies")} did not judge this request`), el("ul", {}, reasons.map((text) => el("li", {}, text))));
}

// --------------------------------------------------------------------------------------------------- the object

function change(each, writers, policies) {
  const earlier = [...new Set(each.earlier.map((index) => policies[index]).filter(Boolean).map(nameOf))];
  return el(
    "tr",
    {},
    el("th", { scope: "row", class: "code" }, each.path),
    el("td", {}, each.op),
    el("td", { class: "code" }, valueOf(each, "before")),
    el("td", { class: "code" }, valueOf(each, "after")),
    el("td", {}, writer(each.policy, writers), earlier.length ? ` (earlier: ${earlier.join(", ")})` : ""),
  );
}

function changes(decision, writers) {
  return table("Changed fields", ["Field", "Change", "Before", "After", "By policy"], decision.changedBy.map((each) => change(each, writers, decision.policies)));
}

function objectLines(object, decision, writers) {
  const shown = lines(object, decision.changedBy);
  const row = (line) =>
    el(
      "li",
      { class: line.policy ? `writer-${((writers.get(line.policy) - 1) % COLOURS) + 1}` : null },
      "  ".repeat(line.depth) + line.text,
      line.first ? el("span", { class: "by" }, ` ← ${writers.get(line.policy)} ${line.policy}`) : null,
    );
  return [
    el("ol", { class: "object", tabindex: "0", "aria-label": "The object, with the policies that changed its fields" }, shown.lines.map(row)),
    shown.more ? el("p", { class: "muted" }, "The object is longer; its other lines are not shown.") : null,
  ];
}

/** The review of a decision, as the list of reviews has it. */
function reviewOf({ request }) {
  return { ...request, resource: [request.resource?.resource, request.subResource].filter(Boolean).join("/"), group: request.resource?.group };
}

function one({ decision, object }) {
  const writers = writersOf(decision);
  return [
    el("h2", {}, subject(reviewOf(decision)), " ", badge(decision.outcome)),
    summary(decision),
    reports(decision),
    el("h3", {}, "Where the time went"),
    waterfall(decision),
    unmatched(decision),
    el("h3", {}, decision.changedBy.length ? "Changed fields" : "No field was changed"),
    decision.changedBy.length ? changes(decision, writers) : null,
    object === null ? null : [el("h3", {}, "The object after the policies"), el("p", { class: "muted" }, "Only what the inputs of a called policy include; never the values of a Secret."), objectLines(object, decision, writers)],
  ];
}

function related(decisions) {
  const item = (decision) =>
    el(
      "li",
      {},
      el("a", { href: address({ page: "review", uid: decision.uid }) }, `${utc(decision.time)}, ${decision.phase}${decision.entry ? `, entry ${decision.entry}` : ""}`),
      " ",
      badge(decision.outcome),
      decision.changedBy.length ? ` ${counted(decision.changedBy.length, "changed field")}` : "",
    );
  return decisions.length ? [el("h3", {}, "Other decisions about the same request"), el("ul", {}, refusedFirst(decisions, (each) => each.outcome).map(item))] : [];
}

/** The refused ones before the allowed ones: who looks for a review looks for why it was refused. */
function refusedFirst(decisions, outcome) {
  return decisions.toSorted((one, other) => (outcome(one) === "allowed") - (outcome(other) === "allowed"));
}

const nodes = (parts) => parts.flat(Infinity).filter(Boolean);

/**
 * Show the reviews of a uid: those of this process with their objects, else the decisions of other processes and
 * replicas, which /explain finds. It also finds the decisions that are related to them.
 */
async function fill(area, uid) {
  const explaining = read(`../explain/${encodeURIComponent(uid)}`).catch((error) => error);
  let reviews;
  try {
    reviews = (await read(`api/reviews/${encodeURIComponent(uid)}`)).reviews;
  } catch (error) {
    const explained = await explaining;
    if (explained instanceof Error) throw new AggregateError([explained, error]);
    reviews = explained.decisions.map((decision) => ({ decision, object: null }));
  }
  area.append(...nodes(refusedFirst(reviews, ({ decision }) => decision.outcome).map(one)));
  const explained = await explaining;
  if (!(explained instanceof Error)) area.append(...nodes(related(explained.related)));
}

/** Show the page. Returns a function that ends it. */
export function show(main) {
  const { uid = "" } = parameters();
  const goBack = (event) => {
    if (history.length < 2) return;
    event.preventDefault();
    event.stopPropagation();
    history.back();
  };
  const area = el("div", { class: "review", "aria-busy": "true" });
  main.append(el("p", {}, el("a", { href: address({}), click: goBack }, "← All reviews")), area);
  fill(area, uid)
    .catch((error) => area.append(el("h2", {}, "Review"), ...(error.errors ?? [error]).map((each) => el("p", { role: "alert" }, each.message))))
    .finally(() => area.removeAttribute("aria-busy"));
  return () => {};
}
