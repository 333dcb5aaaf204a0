"""An explanation as text: the story in sentences, then a table of the policies. Made from its JSON document, so that a
gateway of another version can be asked.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from gateway.quoting import clean

Document = Mapping[str, Any]

_CHANGES: Final = 30
"""Changed fields of one decision that are listed: more than a screen is for ``-o json``."""

_WAITING: Final = 5
"""Policies without an answer whose workers are named."""

_VALUE: Final = 80
"""Characters of a value."""

_PHASES: Final = {"mutating": "before it was changed by policies", "validating": "after all changes"}

_SOURCES: Final = {
    "memo": "from an equal call before it",
    "memory": "from the cache of this gateway",
    "redis": "from the cache in Redis",
    "shared": "shared with an equal call",
    "stale": "from a stale verdict, because its worker failed",
}


def explanation_lines(explanation: Document) -> Iterator[str]:
    """The lines of a whole explanation; none has a character that controls a terminal."""
    yield from map(clean, _lines(explanation))


def _lines(explanation: Document) -> Iterator[str]:
    for number, decision in enumerate(explanation["decisions"]):
        if number:
            yield ""
        yield from _decision(decision)
    related = explanation["related"]
    if related:
        yield ""
        yield "Other decisions about the same request:"
        for decision in related:
            yield f"  {_when(decision)}  {decision['outcome']:<8} {_call(decision)}, uid {decision['uid']}"
            yield from (f"  {line}" for line in _refusals(decision))
            yield from (f"  {line}" for line in _changes(decision))
    searched = explanation["searched"]
    if searched["why"]:
        yield ""
        yield f"There may be more: {searched['why']}."


def _decision(decision: Document) -> Iterator[str]:
    yield f"{decision['outcome'].upper()}: {_subject(decision)}"
    yield f"  {_when(decision)}, {_call(decision)}, gateway {decision['replica']}"
    yield f"  uid {decision['uid']}" + (f", trace {decision['traceId']}" if decision["traceId"] else "")
    yield ""
    refusals = list(_refusals(decision))
    yield from refusals
    if decision["outcome"] == "canceled":
        yield from _canceled(decision)
    elif not decision["allowed"] and (not refusals or decision.get("reason")):
        yield f"The gateway refused it: {_first_line((decision['status'] or {}).get('message', ''))}"
    elif not refusals:
        yield "No policy refused it."
    yield from _changes(decision)
    yield from _calls(decision)
    yield from _time(decision)
    if decision["cuts"]:
        yield f"Left out, because it is too large: {'; '.join(decision['cuts'][:5])}"
    if decision["policies"]:
        yield ""
        yield from _table(decision["policies"])


def _when(decision: Document) -> str:
    time: str = decision["time"]
    return time.replace("T", " ").removesuffix("Z") + " UTC"


def _call(decision: Document) -> str:
    entry = f"entry {decision['entry']}" if decision["entry"] else "all policies"
    return f"{decision['phase']} phase, {entry}"


def _subject(decision: Document) -> str:
    request = decision["request"]
    resource = request["resource"]["resource"] + (f"/{request['subResource']}" if request["subResource"] else "")
    group = request["resource"]["group"]
    name = "/".join(filter(None, (request["namespace"], request["name"] or "(no name yet)")))
    user = f" by {request['user']}" if request["user"] else ""
    dry_run = ", dry run" if request["dryRun"] else ""
    return f"{request['operation']} {resource}{f'.{group}' if group else ''} {name}{user}{dry_run}"


def _refusals(decision: Document) -> Iterator[str]:
    for policy in decision["policies"]:
        name, reason, message = _name(policy), policy["reason"], policy["message"]
        if policy["verdict"] == "deny":
            if policy["refuses"]:
                yield f"{name} denied it: {message or 'without explanation'}"
            else:
                yield f"{name} would deny it (mode {policy['mode']}: not enforced): {message}"
        elif policy["verdict"] == "failure":
            ends = (
                f"failurePolicy {policy['failurePolicy']} refuses the request"
                if policy["refuses"]
                else f"ignored (failurePolicy {policy['failurePolicy']}, mode {policy['mode']})"
            )
            yield f"{name} failed, {ends}: {reason}: {message}"
        else:
            continue
        yield from (f"  {line}" for line in _whereabouts(policy))


def _canceled(decision: Document) -> Iterator[str]:
    waiting = [policy for policy in decision["policies"] if policy["matched"] and policy["verdict"] is None]
    names = f", while the gateway waited for {_named([_name(policy) for policy in waiting])}" if waiting else ""
    yield f"The client hung up after {_ms(decision['ledger']['spentMs'])}{names}. It got no answer."
    for policy in waiting[:_WAITING]:
        yield from (f"  {line}" for line in _whereabouts(policy))


def _whereabouts(policy: Document) -> Iterator[str]:
    if policy["place"]:
        yield f"configured at  {policy['place']}"
    target = f" at {policy['target']}" if policy["target"] else ""
    version = f", version {policy['version']}" if policy["version"] else ""
    called = f", its policy {policy['policy']}" if policy["policy"] else ""
    yield f"worker         {policy['worker']}{target}{called}{version}"
    if policy["contact"]:
        yield f"whom to ask    {policy['contact']}"
    if policy["documentation"]:
        yield f"what to read   {policy['documentation']}"


def _changes(decision: Document) -> Iterator[str]:
    changed = decision["changedBy"]
    if not changed:
        return
    yield f"Changed {_counted(len(changed), 'field')}:"
    for change in changed[:_CHANGES]:
        value = "" if change["op"] == "remove" else f" = {_value(change)}"
        order = change["earlier"]
        policies = decision["policies"]
        before = ", ".join(_name(policies[index]) for index in order if index < len(policies))
        yield f"  {change['op']:<7} {change['path']}{value}"
        yield f"          by {change['policy']}" + (f", after {before}" if before else "")
    if len(changed) > _CHANGES:
        yield f"  and {len(changed) - _CHANGES} more"


def _value(change: Document) -> str:
    if "after" in change:
        text = msgspec.json.encode(change["after"]).decode()
        return text if len(text) <= _VALUE else text[:_VALUE] + "…"
    if "afterDigest" in change:
        return f"(hidden, digest {change['afterDigest']})"
    return f"({change.get('afterBytes', 0)} bytes)"


def _calls(decision: Document) -> Iterator[str]:
    policies = decision["policies"]
    matched = [policy for policy in policies if policy["matched"]]
    judged = [policy for policy in matched if policy["verdict"] is not None]
    others = [policy for policy in policies if not policy["matched"]]
    called = [policy for policy in matched if policy["source"] in {"called", "stale"}]
    cached = [policy for policy in matched if policy["source"] in {"memory", "redis", "shared", "memo"}]
    yield (
        f"{_counted(len(judged), 'policy', 'policies')} judged it; {_counted(len(called), 'call')} to a worker, "
        f"{_counted(len(cached), 'answer')} without one"
    )
    for policy in others:
        yield f"  {_name(policy)} did not match: {policy['why']}"
    if decision["unmatched"]:
        yield f"  no rule about it: {_named(decision['unmatched'])}"
    if decision["notReached"]:
        first = "the client hung up" if decision["outcome"] == "canceled" else "the refusal came"
        yield f"  not called, because {first} first: {_named(decision['notReached'])}"


def _time(decision: Document) -> Iterator[str]:
    ledger = decision["ledger"]
    stages = ", ".join(f"{stage['name']} {_ms(stage['spentMs'])}" for stage in ledger["stages"])
    yield f"Took {_ms(ledger['spentMs'])} of {_ms(ledger['budgetMs'])}: {stages}"


def _table(policies: Iterable[Document]) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [("POLICY", "VERDICT", "ANSWER", "CACHE", "BEGAN", "TOOK", "DOCUMENT", "CHANGES")]
    rows += [_row(policy) for policy in policies]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _row(policy: Document) -> tuple[str, ...]:
    if not policy["matched"]:
        return (_name(policy), f"no match: {policy['why']}", "", "", "", "", "", "")
    took = policy["endedMs"] - policy["startedMs"]
    verdict = policy["reason"] if policy["verdict"] == "failure" else policy["verdict"]
    answer = policy["source"] if policy["source"] != "none" else "not called"
    cache, document = policy["cache"], policy["document"]
    changes = len(policy["changes"]) or len(policy["wouldChange"])
    return (
        _name(policy) + (" (again)" if policy["round"] else ""),
        verdict or "no answer",
        answer,
        cache["result"] if cache else "",
        _ms(policy["startedMs"]),
        _ms(took),
        f"{document['size']} B" if document else "",
        str(changes) if changes else "",
    )


def _name(policy: Document) -> str:
    return f"{policy['configuration']}/{policy['name']}"


def _named(names: list[str]) -> str:
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")  # noqa: PLR2004


def _ms(value: float) -> str:
    return f"{value:.1f} ms" if value < 100 else f"{value:,.0f} ms"  # noqa: PLR2004 - three digits


def _counted(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _first_line(text: str) -> str:
    return text.partition("\n")[0]
