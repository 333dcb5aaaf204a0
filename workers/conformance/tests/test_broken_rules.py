"""Each check fails a worker that breaks its rule: a check that cannot fail is a defect."""

import pytest

from worker_conformance.calls_file import Calls
from worker_conformance.checks import CHECKS
from worker_conformance.expectations import Allowed, Expected, ExpectedCall, SettingsError
from worker_conformance.policy_calls import POD, VALIDATING, OrdinaryCall
from workers.conformance.tests import faults_of_answers, faults_of_judging, faults_of_servers, faults_of_streams
from workers.conformance.tests.faults import FAULTS
from workers.conformance.tests.reference_serving import Worker

REGISTERED = (faults_of_answers, faults_of_judging, faults_of_servers, faults_of_streams)

SHORT = 1.0
"""Seconds of patience with a worker that may never answer."""

CALLED = Calls(
    ordinary=(
        OrdinaryCall(
            label="a.yaml[0] plain", policy="plain", phase=VALIDATING, settings=b"{}", document=POD, chosen=True
        ),
    ),
    expected=tuple(
        ExpectedCall(
            label="a.yaml", policy="plain", phase=VALIDATING, settings=settings, document=b"{}", expected=expected
        )
        for settings, expected in (
            (b"{}", Expected(allow=Allowed())),
            (b"[]", Expected(errors=(SettingsError("", "must be an object"),))),
        )
    ),
)

NEED_A_FILE = ("verdicts.settings-are-accepted", "expected.verdicts", "expected.settings-errors")

ON_A_TARGET = [check for check in CHECKS if not check.command]


@pytest.mark.parametrize("check", ON_A_TARGET, ids=[check.name for check in ON_A_TARGET])
async def test_a_broken_rule_is_found(checked, check):
    """Each worker that breaks a rule fails its check, which reports what it expected and observed."""
    assert check.name in FAULTS, "no worker of these tests breaks this rule"
    calls = CALLED if check.name in NEED_A_FILE else Calls()
    for broken in FAULTS[check.name]:
        results = await checked(broken(), {check.name}, patience=SHORT, calls=calls)
        result = results[check.name]
        assert result.outcome == "failed", f"{broken.__qualname__}: {result}"
        assert result.expected, result
        assert result.observed, result


async def test_what_is_expected_is_found(checked):
    """A worker with the outcomes that the file expects passes."""
    results = await checked(Worker(), set(NEED_A_FILE), calls=CALLED)
    assert {result.outcome for result in results.values()} == {"passed"}


def test_every_fault_is_of_a_check():
    """Each fault is registered for an existing check."""
    assert set(FAULTS) <= {check.name for check in CHECKS}
