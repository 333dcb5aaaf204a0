"""``expected.*``: what the file of calls says of its own calls, beyond the contract."""

import asyncio
from collections.abc import Sequence

from worker_conformance.check import Section, proto
from worker_conformance.checks.settings import validated
from worker_conformance.expectations import ExpectedCall, of_errors, of_outcome, same
from worker_conformance.findings import BrokenRuleError, NotCheckableError, shown
from worker_conformance.proto.admission.worker.v1 import worker_pb2
from worker_conformance.questions import question
from worker_conformance.subject import Subject

section = Section("expected")

AT_ONCE = 20
"""Calls at the same time: what every worker holds in flight."""

NO_VERDICT = "no call says which verdict is expected: --calls with some, or --samples for the sample policies"
NO_ERRORS = "no call says which errors of its settings are expected: --calls with some, or --samples"


@section.check(
    "verdicts",
    "Each call gets the verdict that its file expects.",
    proto("A verdict is a function of (policy, its version, settings, document)."),
)
async def verdicts(worker: Subject) -> None:
    """All of them, each once."""
    calls = [call for call in worker.expected if not call.expected.errors]
    if not calls:
        raise NotCheckableError(NO_VERDICT)
    differing = []
    for start in range(0, len(calls), AT_ONCE):
        some = calls[start : start + AT_ONCE]
        outcomes = await asyncio.gather(*(worker.client.review(_called(call)) for call in some))
        pairs = zip(some, outcomes, strict=True)
        differing += [(call, shown(found)) for call, found in pairs if not same(call.expected, of_outcome(found))]
    _all_as_expected(len(calls), differing)


@section.check(
    "settings-errors",
    "Settings get the errors that the file expects.",
    proto("What is wrong with the settings, all of it. Empty: the policy can work with them."),
)
async def settings_errors(worker: Subject) -> None:
    """What is wrong with them, in order."""
    calls = [call for call in worker.expected if call.expected.errors]
    if not calls:
        raise NotCheckableError(NO_ERRORS)
    differing = []
    for call in calls:
        found = await validated(worker, call.policy, call.settings)
        if of_errors(found) != call.expected.errors:
            differing.append((call, shown(found)))
    _all_as_expected(len(calls), differing)


def _called(call: ExpectedCall) -> worker_pb2.PolicyCall:
    return question(call.policy, phase=call.phase, settings=call.settings, document=call.document)


def _all_as_expected(count: int, differing: Sequence[tuple[ExpectedCall, str]]) -> None:
    """See that there is no difference; else show the first.

    Raises:
        BrokenRuleError: there is one.
    """
    if differing:
        call, observed = differing[0]
        others = ", ".join(other.label for other, _ in differing[1:6]) or "none"
        observed = f"{observed}; {len(differing)} of {count} differ, others: {others}"
        raise BrokenRuleError(f"{call.label}: {shown(call.expected.shown())}", observed)
