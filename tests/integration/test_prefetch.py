"""Calling early changes how long a review takes, and nothing that the API server gets to see."""

import json

import pytest

from tests.integration.client import message
from tests.integration.running import configuration, policy, source
from tests.integration.workers import answer, deny, patch, pb, scripted
from tests.traffic import recordings

MUTATING = [each for each in recordings() if each.phase == "mutating"]
PODS = [each for each in MUTATING if json.loads(each.body)["request"]["resource"]["resource"] == "pods"]

POLICIES = ("first", "sees-labels", "undoes", "denies-late")


def labels(document):
    """The labels of the object, as far as the policy is shown them."""
    return ((document.get("object") or {}).get("metadata") or {}).get("labels") or {}


async def review(request, context):
    """Four policies that look at each other's work."""
    call = pb.ReviewRequest.FromString(request).call
    document = json.loads(call.document)
    if document.get("object") is None:
        return answer(allow=pb.Allow())
    match call.policy:
        case "first":
            return answer(allow=pb.Allow(merge_patch=b'{"metadata": {"labels": {"first": "1"}}}'), warnings=["first"])
        case "sees-labels":
            content = json.dumps({"metadata": {"labels": {"saw": str(len(labels(document)))}}}).encode()
            return answer(allow=pb.Allow(merge_patch=content))
        case "undoes":
            return patch(
                '[{"op": "remove", "path": "/metadata/labels/first"}]' if "first" in labels(document) else "[]"
            )
        case _:
            return deny("five") if len(labels(document)) > 4 else answer(allow=pb.Allow())


@pytest.mark.parametrize("reinvocation", ["Never", "IfNeeded"])
async def test_prefetch_changes_no_answer(gateway, reinvocation):
    """The same recorded requests, to the same workers, with prefetched calls and without: the same bytes."""
    assert PODS
    chain = [policy(name, reinvocationPolicy=reinvocation) for name in POLICIES]
    chain[1] |= {"inputs": ["/object/metadata/labels"]}
    answers = {}
    async with scripted(*POLICIES, review=review) as target:
        known = configuration(source(workers={"scripted": target}, mutating=chain))
        for early in (True, False):
            async with gateway(known, prefetch=early) as served:
                answers[early] = [(await served.send(message(each))).body for each in PODS]
                called = sum(decision.prefetches for decision in served.decisions.values())
                assert bool(called) is early
                assert (
                    sum(served.metric("policy_prefetches_total", result=word) for word in ("used", "wasted")) == called
                )
    assert answers[True] == answers[False]
    assert any(b'"patch"' in each for each in answers[True])
