"""Fixtures of the kit's tests."""

import pytest

from worker_conformance.calls_file import Calls
from worker_conformance.checks import CHECKS
from worker_conformance.runner import run
from worker_conformance.target import Target
from workers.conformance.tests.reference_serving import serving

PATIENCE = 30.0
"""Seconds to wait for an answer of a correct worker on a loaded machine."""

NO_FILE = Calls()


@pytest.fixture
def checked():
    """Serves a worker and runs checks of it; returns the results by name."""

    async def check(worker, names=None, *, patience=PATIENCE, calls=NO_FILE):
        chosen = [one for one in CHECKS if names is None or one.name in names]
        async with serving(worker) as address:
            report = await run(
                Target(address=address), None, checks=chosen, calls=calls, patience=patience, on_result=lambda _: None
            )
        return {result.name: result for result in report.checks}

    return check
