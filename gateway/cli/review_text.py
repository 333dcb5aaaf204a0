"""``review``'s report as text: the decision on each request, and what each policy decides and changes."""

from collections.abc import Iterator
from typing import Final

import click
from msgspec.structs import replace

from gateway.cli.terminal_text import change, outcome, sentences, short, title
from gateway.engine.conflicts import CONFLICTS_KEPT
from gateway.engine.decision import Decision
from gateway.engine.field_changes import digest, hides
from gateway.engine.invocation_record import InvocationRecord
from gateway.engine.verdicts import Failure
from gateway.patching.difference import Operation
from gateway.policies.model import Mode, OnConflict, Phase
from gateway.quoting import clean
from gateway.review.request import Request
from gateway.serving.dispatch_simulator import SimulatedCall, Simulation, is_unsent

_WIDTH: Final = 112
"""Columns, as in ``demo``."""
_CHANGES_SHOWN: Final = 20

_VERBS: Final = {Phase.MUTATING: "mutate", Phase.VALIDATING: "validate"}


def reported(source: str, simulation: Simulation, *, first: bool) -> Iterator[str]:
    """The lines about one phase of a review; with ``first``, preceded by its title."""
    if first:
        yield click.style(f"{clean(source)}: {title(simulation.request)}", bold=True)
    word = outcome("allowed" if simulation.allowed else "refused", simulation.status)
    yield f"  {_VERBS[simulation.phase]:<8} {click.style(word, fg='green' if simulation.allowed else 'red', bold=True)}"
    if simulation.status is not None:
        for line in clean(simulation.status.message).splitlines() or [""]:
            yield f"    {line}"
    called = [visit for visit in simulation.visits if any(call.matched for call in visit.decision.calls)]
    for visit in simulation.visits:
        yield from _visit(visit)
    if is_unsent(simulation.request):
        kind = clean(simulation.request.kind.kind)
        yield f"    not judged: kube-apiserver sends a {kind} only to webhooks from its manifest files"
    elif not called:
        yield "    no policy matches this request"
    for warning in simulation.warnings:
        yield f"    warning: {clean(warning)}"
    for key, value in simulation.audit_annotations.items():
        yield f"    audit: {clean(f'{key}: {value}')}"


def _visit(visit: SimulatedCall) -> Iterator[str]:
    yield f"    entry {visit.entry.name}{', reinvoked' if visit.round else ''}"
    for call in visit.decision.all_calls:
        label = f"{click.style(call.label, bold=call.matched)}{_mode(call)}{', again' if call.round else ''}"
        yield f"      {label}: {_verdict(call)}"
        for sentence in sentences(call):
            for line in sentence.text.splitlines():
                yield f"        {line}"
        yield from _hint(call)
        yield from _changes(call.changes or call.would_change, call, visit.decision.request)
        yield from _conflicts(call)
    yield from _rewritten(visit.decision)


def _mode(call: InvocationRecord) -> str:
    return "" if call.policy.mode is Mode.ENFORCE else f" (mode {call.policy.mode})"


def _verdict(call: InvocationRecord) -> str:
    if not call.matched:
        return f"not matched: {clean(call.why)}"
    for sentence in sentences(call):
        ignored = ", ignored by failurePolicy Ignore" if call.failed_open else ""
        return click.style(sentence.verb, fg=sentence.colour) + ignored
    if call.would_change:
        return "allows, and would change"
    return "allows, and changes" if call.changes else "allows"


def _hint(call: InvocationRecord) -> Iterator[str]:
    """What to do about a failure whose message is kube-apiserver's; clients find it in details.causes."""
    if isinstance(call.answer, Failure) and call.answer.hint:
        yield f"        {' '.join(clean(call.answer.hint).split())}"


def _conflicts(call: InvocationRecord) -> Iterator[str]:
    for conflict in call.conflicts[:_CHANGES_SHOWN]:
        rule = f"onConflict {conflict.rule}: {'not applied' if conflict.rule is OnConflict.DENY else 'applied'}"
        text = f"conflicts with {', '.join(conflict.with_policies)} at {conflict.path} ({rule})"
        yield f"        {click.style(short(clean(text), _WIDTH - 8), fg='yellow')}"
    if len(call.conflicts) > _CHANGES_SHOWN:
        least = "at least " if len(call.conflicts) == CONFLICTS_KEPT else ""
        yield f"        and {least}{len(call.conflicts) - _CHANGES_SHOWN} more conflicts"


def _rewritten(decision: Decision) -> Iterator[str]:
    """The writers of fields that more than one policy has written; the other fields are listed at their policy."""
    rewritten = [each for each in decision.field_changes if each.earlier]
    for each in rewritten[:_CHANGES_SHOWN]:
        writers = " then ".join(
            dict.fromkeys([*(decision.calls[order].label for order in each.earlier), each.policy]),
        )
        yield f"      {short(clean(f'{each.path} was written by {writers}'), _WIDTH - 6)}"
    if len(rewritten) > _CHANGES_SHOWN:
        yield f"      and {len(rewritten) - _CHANGES_SHOWN} more fields were written more than once"


def _changes(operations: tuple[Operation, ...], call: InvocationRecord, request: Request) -> Iterator[str]:
    for operation in operations[:_CHANGES_SHOWN]:
        if operation.op != "remove" and hides(request, [call], operation):
            # Reports are pasted into tickets, so hidden values are not printed.
            hidden = f"(a value with the digest {digest(operation.value, request.uid.encode())})"
            yield f"        {change(replace(operation, value=hidden), _WIDTH - 16)}"
        else:
            yield f"        {change(operation, _WIDTH - 16)}"
    if len(operations) > _CHANGES_SHOWN:
        yield f"        and {len(operations) - _CHANGES_SHOWN} more changes"
