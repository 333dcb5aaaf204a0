"""W3C Trace Context goes from the API server to the workers: beside the document, and nowhere else."""

import pytest

from tests.integration.client import post
from tests.integration.running import configuration, policy, source
from tests.integration.workers import ALLOW, scripted
from tests.traffic import recording

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

VALIDATING = recording("pod-create.1v")


class MetadataRecorder:
    """A worker that keeps what it is reported beside the call."""

    def __init__(self):
        self.metadata = []

    async def review(self, request, context):
        reported = dict(context.invocation_metadata())
        self.metadata.append(reported.get("traceparent"))
        return ALLOW


@pytest.mark.parametrize(
    ("header", "reported"),
    [
        (TRACEPARENT, TRACEPARENT),
        (None, None),
        ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331", None),
        ("00-00000000000000000000000000000000-b7ad6b7169203331-01", None),
        ("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", None),
        ("ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", None),
        (TRACEPARENT.upper(), None),
    ],
    ids=["sound", "none", "cut off", "no trace", "no parent", "a version that cannot be", "capitals"],
)
async def test_the_trace_of_a_review_goes_on_to_its_workers(gateway, header, reported):
    """A traceparent that is sound reaches the worker as it came; any other is as if there were none."""
    worker = MetadataRecorder()
    async with scripted("judge", review=worker.review) as target:
        known = configuration(source(workers={"scripted": target}, validating=[policy("judge")]))
        async with gateway(known) as served:
            answered = await served.send(post(VALIDATING.body, "/validate?timeout=10s", ("traceparent", header)))
    assert answered.response["allowed"]
    assert worker.metadata == [reported]
