"""``expected.*``: what the file of asks says of its own asks, beyond the contract."""

import asyncio
from collections.abc import Sequence

from worker_conformance.check import Section, proto
from worker_conformance.checks.settings import validated
from worker_conformance.expectations import ExpectedAsk, of_errors, of_outcome, same
from worker_conformance.findings import BrokenRuleError, NotCheckableError, shown
from worker_conformance.proto.admission.worker.v1 import worker_pb2
from worker_conformance.questions import question
from worker_conformance.subject import Subject

section = Section("expected")

AT_ONCE = 20
"""Asks at the same time: what every worker holds in flight."""

NO_VERDICT = "no ask says which verdict is expected: --asks with some, or --samples for the sample policies"
NO_ERRORS = "no ask says which errors of its settings are expected: --asks with some, or --samples"


@section.check(
    "verdicts",
    "Each ask gets the verdict that its file expects.",
    proto("A verdict is a function of (policy, its version, settings, document)."),
)
async def verdicts(worker: Subject) -> None:
    """All of them, each once."""
    asks = [ask for ask in worker.expected if not ask.expected.errors]
    if not asks:
        raise NotCheckableError(NO_VERDICT)
    differing = []
    for start in range(0, len(asks), AT_ONCE):
        some = asks[start : start + AT_ONCE]
        outcomes = await asyncio.gather(*(worker.client.review(_asked(ask)) for ask in some))
        pairs = zip(some, outcomes, strict=True)
        differing += [(ask, shown(found)) for ask, found in pairs if not same(ask.expected, of_outcome(found))]
    _all_as_expected(len(asks), differing)


@section.check(
    "settings-errors",
    "Settings get the errors that the file expects.",
    proto("What is wrong with the settings, all of it. Empty: the policy can work with them."),
)
async def settings_errors(worker: Subject) -> None:
    """What is wrong with them, in order."""
    asks = [ask for ask in worker.expected if ask.expected.errors]
    if not asks:
        raise NotCheckableError(NO_ERRORS)
    differing = []
    for ask in asks:
        found = await validated(worker, ask.policy, ask.settings)
        if of_errors(found) != ask.expected.errors:
            differing.append((ask, shown(found)))
    _all_as_expected(len(asks), differing)


def _asked(ask: ExpectedAsk) -> worker_pb2.Ask:
    return question(ask.policy, phase=ask.phase, settings=ask.settings, document=ask.document)


def _all_as_expected(count: int, differing: Sequence[tuple[ExpectedAsk, str]]) -> None:
    """See that there is no difference; else show the first.

    Raises:
        BrokenRuleError: there is one.
    """
    if differing:
        ask, observed = differing[0]
        others = ", ".join(other.label for other, _ in differing[1:6]) or "none"
        observed = f"{observed}; {len(differing)} of {count} differ, others: {others}"
        raise BrokenRuleError(f"{ask.label}: {shown(ask.expected.shown())}", observed)
