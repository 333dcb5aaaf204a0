"""What a target would say if the gateway were wrong: each planted fault is found by what it begins with."""

import json

import pytest

from gateway.engine import engine
from gateway.serving import review_handler
from gateway.serving.http_server import HttpReply
from tests.fuzz import entry, patches, webhook_answers


def with_version(monkeypatch):
    encode = review_handler.encode
    fault = lambda response, **fields: encode(response, **{**fields, "api_version": "admission.k8s.io/v7"})  # noqa: E731
    monkeypatch.setattr(review_handler, "encode", fault)


def without_patch(monkeypatch):
    encode = review_handler.encode

    def fault(response, *, mutating, **fields):
        content = json.loads(encode(response, mutating=mutating, **fields))
        for member in ("patch", "patchType"):
            content["response"].pop(member, None)
        return json.dumps(content).encode()

    monkeypatch.setattr(review_handler, "encode", fault)


def with_more(monkeypatch):
    encode = engine.encode_patch
    extra = {"op": "add", "path": "/metadata/annotations", "value": {}}
    monkeypatch.setattr(engine, "encode_patch", lambda patch: json.dumps([*json.loads(encode(patch)), extra]).encode())


def with_another_reply(monkeypatch):
    world = entry._worlds[0]
    judge = world.gateway.server._judge

    async def fault(*args, **fields):
        reply = await judge(*args, **fields)
        return HttpReply(status=reply.status, body=reply.body.replace(b"true", b"false"))

    monkeypatch.setattr(world.gateway.server, "_judge", fault)


@pytest.mark.parametrize(
    ("plant", "why"),
    [
        (with_version, "admission.k8s.io/v7"),
        (without_patch, "is not that of the worker"),
        (with_more, "is not that of the worker"),
        (with_another_reply, "the client got other replies"),
    ],
)
def test_the_entry_finds_a_planted_fault(monkeypatch, plant, why):
    """In the recorded requests."""
    with entry.world():
        plant(monkeypatch)
        with pytest.raises(AssertionError, match=why):  # noqa: PT012 - which of them it is does not matter
            for seed in entry.seeds():
                entry.run(seed)


def test_the_recordings_are_among_the_seeds():
    """What Kubernetes' own test webhook has answered: every review, for both phases, with its uid and with ours."""
    found = list(webhook_answers.recorded())
    assert len(found) > 50
    seeds = list(webhook_answers.seeds())
    assert len(seeds) > 4 * len(found)
    for seed in seeds:
        webhook_answers.run(seed)
    for seed in patches.seeds():
        patches.run(seed)
