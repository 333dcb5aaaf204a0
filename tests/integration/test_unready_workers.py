"""Workers that may not be called: away, undescribed, not willing. Their policies fail, and the gateway is ready."""

import asyncio

import grpc
import pytest

from gateway.reasons import Reason
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from tests.integration.client import message
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import configuration, policy, source, until
from tests.integration.workers import (
    Hanging,
    always,
    deny,
    description,
    garbage,
    scripted,
    status,
)
from tests.traffic import recording

MUTATING = recording("pod-create.0m")
VALIDATING = recording("pod-create.1v")


def refused(pointer, text):
    return pb.ValidateSettingsResponse(errors=[pb.SettingsError(pointer=pointer, message=text)]).SerializeToString()


UNUSABLE = {
    "settings refused": ({"validate": always(refused("/a/0", "must not be 1"))}, {}, "settings/a/0: must not be 1"),
    "no such policy": ({"describe": always(description("other"))}, {}, "holds no policy 'judge'"),
    "another phase": (
        {"describe": always(description("judge", phases=[pb.PHASE_MUTATING]))},
        {},
        "cannot be used for validating",
    ),
    "no phase": ({"describe": always(description("judge", phases=[]))}, {}, "cannot be used for validating"),
    "no version": ({"describe": always(description("judge", version=""))}, {}, "describes no version"),
    "settings that no policy takes": ({"validate": False}, {"settings": {"a": [1]}}, "accepts no settings"),
}


@pytest.mark.parametrize("name", UNUSABLE)
async def test_a_policy_that_its_worker_does_not_take_fails(call, name):
    """Where a described worker cannot be used for a policy, the policy is a failure CONFIGURATION that says why."""
    worker, fields, why = UNUSABLE[name]
    review = Hanging()
    async with call(VALIDATING, worker=worker | {"review": review}, **fields) as served:
        answered = await served.send(message(VALIDATING))
        assert answered.fails_with(Reason.CONFIGURATION), answered
        assert why in answered.response["status"]["message"]
        assert not review.called.is_set()


BAD_DESCRIPTIONS = {
    "Describe fails": ({"describe": status(grpc.StatusCode.INTERNAL, "not now")}, "INTERNAL: not now"),
    "Describe is no protobuf": ({"describe": always(b"\xff\xff")}, "Describe with an invalid message"),
    "ValidateSettings fails": ({"validate": status(grpc.StatusCode.INTERNAL, "not now")}, "INTERNAL: not now"),
    "ValidateSettings is no protobuf": (
        {"validate": always(b"\xff\xff")},
        "ValidateSettings with an invalid message",
    ),
    "Describe says too much": ({"describe": always(b"\x1a\x00" * 500_000)}, "more than 20000 fields"),
    "ValidateSettings says too much": ({"validate": always(b"\x12\x00" * 500_000)}, "more than 20000 fields"),
}


@pytest.mark.parametrize("name", BAD_DESCRIPTIONS)
async def test_a_worker_that_cannot_be_described_is_not_called(gateway, name):
    """A worker that answers, but cannot be described, leaves its policies as failures CONFIGURATION that say why."""
    worker, why = BAD_DESCRIPTIONS[name]
    async with scripted("judge", **worker) as target:
        known = configuration(source(workers={"scripted": target}, validating=[policy("judge")]))
        async with gateway(known, wait=0.0) as served:
            await until(lambda: why in getattr(served.availability("judge"), "message", ""))
            answered = await served.send(message(VALIDATING))
            assert answered.fails_with(Reason.CONFIGURATION), answered


async def test_a_worker_without_settings_needs_no_validation(call):
    """ValidateSettings may be missing: then {} is accepted, and the policy is called."""
    async with call(VALIDATING, worker={"validate": False, "review": always(deny("asked"))}) as served:
        assert (await served.send(message(VALIDATING))).response["status"]["message"] == "asked"


UNREADABLE = {
    "an HTTP/1.1 server": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    "noise": bytes(range(256)),
    "silence": b"",
}


@pytest.mark.parametrize("name", UNREADABLE)
async def test_a_server_without_grpc_is_unreachable(gateway, name):
    """Where something else listens at a worker's address, its policies fail, and the gateway serves and is ready."""
    async with garbage(UNREADABLE[name]) as (target, met):
        known = configuration(source(workers={"scripted": target}, validating=[policy("judge")]))
        async with gateway(known, wait=0.0) as served:
            async with asyncio.timeout(WAIT_SECONDS):
                await met.wait()
            answered = await served.send(message(VALIDATING))
            assert answered.fails_with(Reason.CONFIGURATION), answered
            said = answered.response["status"]["message"]
            assert "is not connected yet" in said or "cannot be reached" in said
            assert await served.admin("/readyz") == (200, "ok\n")


async def test_a_worker_is_found_when_it_appears(gateway, tmp_path):
    """A worker that is away when the gateway starts is described when it comes, and its policies judge."""
    address = f"unix:{tmp_path}/late.sock"
    known = configuration(source(workers={"scripted": address}, validating=[policy("judge")]))
    async with gateway(known, wait=0.0) as served:
        answered = await served.send(message(VALIDATING))
        assert answered.fails_with(Reason.CONFIGURATION), answered
        assert await served.admin("/readyz") == (200, "ok\n")
        async with scripted("judge", review=always(deny("here I am")), address=address):
            await until(lambda: served.availability("judge") == "1")
            assert (await served.send(message(VALIDATING))).response["status"]["message"] == "here I am"


async def test_a_worker_that_goes_is_unavailable_until_it_is_back(gateway, tmp_path):
    """While a described worker is away its policies are WORKER_UNAVAILABLE; a new one is described anew, and judges."""
    address = f"unix:{tmp_path}/comes-and-goes.sock"
    known = configuration(source(workers={"scripted": address}, validating=[policy("judge")]))
    async with scripted("judge", address=address):
        served_ = gateway(known)
        served = await served_.__aenter__()
    try:
        answered = await served.send(message(VALIDATING))
        assert answered.fails_with(Reason.WORKER_UNAVAILABLE), answered
        assert served.availability("judge") == "1"
        newer = {"describe": always(description("judge", version="2")), "review": always(deny("newer"))}
        async with scripted("judge", address=address, **newer):
            await until(lambda: served.availability("judge") == "2")
            assert (await served.send(message(VALIDATING))).response["status"]["message"] == "newer"
    finally:
        await served_.__aexit__(None, None, None)
