"""Workers that keep the contract pass: the kit requires no more than the contract."""

import pytest

from worker_conformance.checks.expected import NO_ERRORS, NO_VERDICT
from workers.conformance.tests.reference_serving import Worker


@pytest.mark.timeout(900)
async def test_a_good_worker_passes(checked):
    """The reference worker, given by its address, fails no check; only checks that need its command are skipped."""
    results = await checked(Worker())
    wrong = [result for result in results.values() if result.outcome in {"failed", "broken"}]
    assert not wrong
    skipped = {result.reason for result in results.values() if result.outcome == "skipped"}
    assert skipped == {"it needs the worker's command, after --", "no --calls were given", NO_VERDICT, NO_ERRORS}
