"""Legal objects that are small in bytes and large in work: each is decided, and others are not kept waiting."""

import asyncio
import json

import pytest

from gateway.review.request import MOST_VALUES, decoding
from gateway.serving import heavy_reviews
from tests.integration.client import message, post
from tests.integration.running import configuration, policy, source
from tests.integration.workers import scripted
from tests.traffic import recording

INNOCENT = recording("pod-create.1v")
HEAVY_BYTES = 3_000_000
"""Nearly the API server's limit for a request, 3 MiB."""
TWELVE = 12


def review(spec, uid="heavy"):
    """An AdmissionReview about a pod with this JSON text as its spec."""
    request = {
        "uid": uid,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "t",
        "operation": "CREATE",
        "object": {"metadata": {"name": "p"}, "spec": "@"},
    }
    text = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
    return text.encode().replace(b'"@"', spec)


def nested(size):
    """Arrays in arrays of so many bytes."""
    unit = b"[" * 100 + b"]" * 100
    return b"[" + b",".join([unit] * (size // len(unit))) + b"]"


class Slices:
    """Decodes as ``decoding`` does. ``breaks`` are the iterations of the event loop in which a slice ended."""

    def __init__(self):
        self.breaks = []
        self._iteration = 0
        self._task = asyncio.create_task(self._count())

    async def _count(self):
        while True:
            await asyncio.sleep(0)
            self._iteration += 1

    def decoding(self, body, **limits):
        steps = decoding(body, **limits)
        while True:
            try:
                next(steps)
            except StopIteration as done:
                return done.value
            self.breaks.append(self._iteration)
            yield

    def stop(self):
        self._task.cancel()


async def test_innocent_reviews_beside_twelve_heavy_ones_are_answered_in_time(gateway, monkeypatch):
    """Each heavy one is decided with its reason, the policy of whole objects judges it, and no innocent one fails.

    No two slices, of which each heavy one has one for every 64 KB, are done in the same iteration of the loop.
    """
    # A break after each slice, however quick the machine is.
    monkeypatch.setattr(heavy_reviews, "_BURST_SECONDS", 1e-9)
    about = [policy("whole"), policy("part", inputs=["/object/metadata/labels"], timeoutSeconds=5)]
    async with scripted("whole", "part") as target:
        known = configuration(source(workers={"scripted": target}, validating=about))
        async with gateway(known) as served:
            sent = post(review(nested(HEAVY_BYTES)), "/validate?timeout=30s")
            slices = Slices()
            monkeypatch.setattr(heavy_reviews, "decoding", slices.decoding)
            heavy = [asyncio.create_task(served.send(sent)) for _ in range(TWELVE)]
            client, innocent = await served.client(), 0
            while not all(task.done() for task in heavy):
                assert (await client.send(message(INNOCENT))).response["allowed"]
                innocent += 1
            slices.stop()
            assert len(slices.breaks) > TWELVE * (HEAVY_BYTES // 65_536)
            # The first slice of one, which finds out that it is heavy, may come right after that of another.
            assert len(set(slices.breaks)) >= len(slices.breaks) - TWELVE
            for answer in await asyncio.gather(*heavy):
                assert answer.response["uid"] == "heavy"
                assert "part.test.example.com: REQUEST_TOO_LARGE: " in answer.response["status"]["message"]
            assert innocent > TWELVE
            assert [call.policy.policy for call in served.decisions["heavy"].calls if call.call] == ["whole"]
            assert served.metric("heavy_reviews_total") == TWELVE
            assert served.metric("limit_hits_total", limit="readable_values") == TWELVE


@pytest.mark.parametrize(
    "spec",
    [
        b"[%s]" % b",".join([b"1.7976931348623157e+308"] * 130_000),
        b"[%s]" % b",".join([b"9" * 4_300] * 697),
        b'"%s"' % ("😀" * 4_000_000).encode(),
    ],
    ids=["floats", "integers", "one text of 16 MB"],
)
async def test_few_values_that_take_long_to_read_are_heavy(gateway, spec):
    """Numbers are charged for what they cost, texts for their bytes: they are not read, but judged as a whole."""
    about = [policy("whole"), policy("part", inputs=["/object/metadata/labels"], timeoutSeconds=5)]
    async with scripted("whole", "part") as target:
        known = configuration(source(workers={"scripted": target}, validating=about))
        async with gateway(known) as served:
            answer = await served.send(post(review(spec), "/validate?timeout=30s"))
            assert "part.test.example.com: REQUEST_TOO_LARGE: " in answer.response["status"]["message"]
            assert [call.policy.policy for call in served.decisions["heavy"].calls if call.call] == ["whole"]
            assert served.metric("heavy_reviews_total") == 1


async def test_a_heavy_review_below_the_limit_is_judged(gateway):
    """It is read in slices, and nothing in its answer shows it."""
    about = [policy("part", inputs=["/object/spec/*/0"])]
    async with scripted("part") as target:
        known = configuration(source(workers={"scripted": target}, validating=about))
        async with gateway(known) as served:
            answer = await served.send(post(review(nested(HEAVY_BYTES // 10)), "/validate?timeout=30s"))
            assert answer.response["allowed"]
            assert served.metric("heavy_reviews_total") == 1


async def test_far_too_many_values_are_denied_with_the_uid(gateway):
    """As a body of too many bytes: 413, because not even its members are told apart."""
    async with scripted("whole") as target:
        known = configuration(source(workers={"scripted": target}, validating=[policy("whole")]))
        async with gateway(known) as served:
            values = b"[" + b"[]," * (MOST_VALUES // 2) + b"0]"
            answer = await served.send(post(review(values, uid="far-too-many"), "/validate?timeout=30s"))
            status = answer.response["status"]
            assert (answer.response["uid"], answer.response["allowed"], status["code"]) == ("far-too-many", False, 413)
            assert status["message"].startswith("REQUEST_TOO_LARGE: ")
