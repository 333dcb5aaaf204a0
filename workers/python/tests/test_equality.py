"""The same calls over Review and over ReviewStream: the same Outcomes."""

import asyncio
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission_worker import NO_STORE, Cause, Worker, allow, deny, fail, merge, mutated, patch
from admission_worker.proto.admission.worker.v1 import worker_pb2
from workers.python.tests.client import batch, connected, policy_call


class AnswerSettings(msgspec.Struct, forbid_unknown_fields=True):
    """Settings of a policy that acts by them."""

    do: str


def _respond(request, settings):
    labels = (request.object or {}).get("labels", {})
    answers = {
        "allow": lambda: allow(warnings=sorted(labels), audit_annotations={"seen": str(len(labels))}, cache=NO_STORE),
        "deny": lambda: deny(
            f"{request.operation}", code=409, causes=[Cause(key, value) for key, value in labels.items()]
        ),
        "fail": lambda: fail("cannot tell"),
        "patch": lambda: patch([{"op": "add", "path": "/labels", "value": labels}]),
        "merge": lambda: merge({"labels": labels}),
        "mutated": lambda: mutated({"labels": labels}),
        "absurd": lambda: labels,
        "raise": lambda: labels["no such label"],
    }
    return answers[settings.do]()


def _worker():
    worker = Worker("test", version="1")

    @worker.mutating("mutating", settings=AnswerSettings)
    @worker.validating("validating", settings=AnswerSettings)
    def inline(request, settings):
        return _respond(request, settings)

    @worker.mutating("async", settings=AnswerSettings)
    async def coroutine(request, settings):
        await asyncio.sleep(0)
        return _respond(request, settings)

    @worker.mutating("blocking", settings=AnswerSettings, blocking=True)
    def blocking(request, settings):
        return _respond(request, settings)

    return worker


DOING = st.sampled_from(["allow", "deny", "fail", "patch", "merge", "mutated", "absurd", "raise", "unheard of"])
LABELS = st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3)
DOCUMENTS = st.one_of(
    st.builds(lambda labels: json.dumps({"operation": "CREATE", "object": {"labels": labels}}).encode(), LABELS),
    st.binary(max_size=20),
    st.none(),
)
SETTINGS = st.one_of(DOING.map(lambda do: json.dumps({"do": do}).encode()), st.binary(max_size=10), st.just(b"{}"))
CALLS = st.builds(
    policy_call,
    st.sampled_from(["mutating", "validating", "async", "blocking", "unheard-of"]),
    phase=st.sampled_from([worker_pb2.PHASE_UNSPECIFIED, worker_pb2.PHASE_MUTATING, worker_pb2.PHASE_VALIDATING]),
    settings=SETTINGS,
    document=DOCUMENTS,
    uid=st.text(max_size=5),
)


@pytest.mark.property
def test_review_and_review_stream_give_equal_outcomes():
    """A message of calls gets the same outcomes as single Reviews, with shared documents and without."""
    with asyncio.Runner() as runner:
        connection = connected(_worker())
        client = runner.run(connection.__aenter__())

        async def answers(policy_calls, shared):
            one_by_one = [await client.review(one) for one in policy_calls]
            calls = client.stream()
            if shared:
                await calls.send(_with_indexes(policy_calls))
            else:
                await calls.send(batch(*policy_calls))
            together = await calls.rest()
            return one_by_one, [together[number] for number in range(1, len(policy_calls) + 1)]

        @given(st.lists(CALLS, max_size=6), st.booleans())
        def equal(policy_calls, shared):
            one_by_one, together = runner.run(answers(policy_calls, shared))
            assert one_by_one == together

        try:
            equal()
        finally:
            runner.run(connection.__aexit__(None, None, None))


def _with_indexes(policy_calls):
    """The same calls, each with the index of its document in the message."""
    message = worker_pb2.ReviewStreamRequest()
    for number, one in enumerate(policy_calls, 1):
        item = message.items.add(id=number, call=one)
        if one.WhichOneof("document_source") == "document":
            if one.document not in message.documents:
                message.documents.append(one.document)
            item.call.document_index = list(message.documents).index(one.document)
    return message
