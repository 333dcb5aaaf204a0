"""What the kit's tests share."""

import pytest

from worker_conformance.calls_file import Calls
from worker_conformance.checks import CHECKS
from worker_conformance.running import run
from worker_conformance.target import Target
from workers.conformance.tests.reference_serving import serving

PATIENCE = 30.0
"""Seconds that a check waits for an answer of a worker that is all right, on a machine that is busy with others."""

NO_FILE = Calls()


@pytest.fixture
def checked():
    """Serves a worker and makes checks of it: the results by name."""

    async def check(worker, names=None, *, patience=PATIENCE, calls=NO_FILE):
        chosen = [one for one in CHECKS if names is None or one.name in names]
        async with serving(worker) as address:
            report = await run(
                Target(address=address), None, checks=chosen, calls=calls, patience=patience, told=lambda _: None
            )
        return {result.name: result for result in report.checks}

    return check
