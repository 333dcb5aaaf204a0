"""``expected.*``: outcomes that the file of calls expects, beyond the contract."""

import asyncio
from collections.abc import Sequence

from worker_conformance.check import Section, proto
from worker_conformance.checks.settings import validated
from worker_conformance.expectations import ExpectedCall, of_errors, of_outcome, same
from worker_conformance.findings import BrokenRuleError, NotCheckableError, shown
from worker_conformance.policy_calls import policy_call
from worker_conformance.proto.admission.worker.v1 import worker_pb2
from worker_conformance.subject import Subject

section = Section("expected")

AT_ONCE = 20
"""Concurrent calls: few enough for every worker's --in-flight."""

NO_VERDICT = (
    "no call has an expected verdict: give --calls with expected verdicts, or --samples for the sample policies"
)
NO_ERRORS = (
    "no call has expected errors: give --calls with expected errors of settings, or --samples for the sample policies"
)


@section.check(
    "verdicts",
    "Each call of the file gets its expected verdict.",
    proto("A verdict is a function of (policy, its version, settings, document)."),
)
async def verdicts(worker: Subject) -> None:
    """Each call once."""
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
    "Settings of the file get their expected errors.",
    proto("What is wrong with the settings, all of it. Empty: the policy can work with them."),
)
async def settings_errors(worker: Subject) -> None:
    """All errors, in order."""
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
    return policy_call(call.policy, phase=call.phase, settings=call.settings, document=call.document)


def _all_as_expected(count: int, differing: Sequence[tuple[ExpectedCall, str]]) -> None:
    """Expect no difference.

    Raises:
        BrokenRuleError: with the first difference, and how many there are.
    """
    if differing:
        call, observed = differing[0]
        others = ", ".join(other.label for other, _ in differing[1:6]) or "none"
        observed = f"{observed}; {len(differing)} of {count} differ, others: {others}"
        raise BrokenRuleError(f"{call.label}: {shown(call.expected.shown())}", observed)
