"""What observing adds to a review: counted in calls of functions, which no other load of the machine changes."""

import os
import sys
from base64 import b64encode

import pytest

from gateway.telemetry.traces.settings import trace_settings
from tests.integration.client import post
from tests.integration.running import configuration, policy, source
from tests.integration.workers import ALLOW, always, scripted
from tests.traffic import recording

pytestmark = pytest.mark.integration

REVIEW = post(recording("pod-create.1v").body, "/validate?timeout=10s")

WARM, FOLLOWED = 10, 20

MOST_CALLS = 40
"""That everything together adds, of Python's functions and C's, those of the client and of the worker in this process
included: 36 today, to 690. At most 6 % leave 4 % of 10 % to the reviews that are exported and recorded: of one in a
hundred, four times what another review takes."""


async def calls_of_a_review(served):
    """How many functions this thread calls for a review: the fewest, because timers fall into others."""
    client = await served.client()
    for _ in range(WARM):
        await client.send(REVIEW)
    counts = []
    for _ in range(FOLLOWED):
        events = []
        sys.setprofile(lambda _frame, event, _argument, events=events: events.append(event))
        try:
            answered = await client.send(REVIEW)
        finally:
            sys.setprofile(None)
        assert answered.response["allowed"]
        counts.append(events.count("call") + events.count("c_call"))
    return min(counts)


async def test_a_review_that_is_not_sampled_pays_little_for_everything(gateway, tmp_path):
    """Traces, recordings and the decision log add a few calls to a review that none of them writes about."""
    (tmp_path / "recordings").mkdir()
    key = tmp_path / "key"
    key.touch(0o600)
    key.write_text(b64encode(os.urandom(32)).decode())
    everything = {
        "traces": trace_settings({}, endpoint="http://127.0.0.1:1", ratio=0.0),
        "decision_log": str(tmp_path / "decisions.log"),
        "recording_dir": tmp_path / "recordings",
        "recording_key_file": key,
        "recording_sample_ratio": 0.0,
    }
    found = {}
    async with scripted("judge", review=always(ALLOW)) as target:
        known = configuration(source(workers={"scripted": target}, validating=[policy("judge")]))
        for name, settings in {"off": {}, "everything": everything}.items():
            async with gateway(known, **settings) as served:
                found[name] = await calls_of_a_review(served)
    assert found["everything"] - found["off"] <= MOST_CALLS, found
