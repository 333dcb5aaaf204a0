"""Shadows beside the policies: described and called like them, without an effect on them."""

import asyncio

import pytest
from msgspec.structs import replace

from gateway.engine.plan import Described, Unavailable, UnavailableReason
from gateway.engine.verdicts import Allow, Failure
from gateway.policies.fields.shadows import shadow_of
from gateway.policies.model import Phase, Shadow
from gateway.policies.workers.targets import WebhookTarget, Worker
from gateway.reasons import Reason
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer_set import PointerSet
from gateway.transports.grpc import connection as module
from gateway.transports.limits import TransportLimits
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.worker_pool import WorkerPool
from gateway.transports.workers import Workers
from tests.integration.running import until
from tests.integration.workers import Hanging, always, answer, description, scripted
from tests.transports.reaching import Reply, availability, called, configured, judge, question, working

NO_CONSUMER = "127.0.0.1:1"
"""A port without a listener: tcpmux is of 1988."""

NEXT = Shadow(worker="next", policy="judge")
SAME_WORKER = Shadow(worker="labels", policy="other")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Pauses too short to wait for."""
    monkeypatch.setattr(module, "RETRY_SECONDS", (0.001, 0.004))


def shadow_standing(workers, policy):
    return workers.shadows.availabilities(Phase.VALIDATING).get(shadow_of(policy).qualified_name)


def described(workers, policy):
    """Whether its shadow can be called."""
    return isinstance(shadow_standing(workers, policy), Described)


async def put(workers, policy, **fields):
    """Put a question to a policy's shadow, and wait for its answer."""
    return await called(workers.shadows, shadow_of(policy), **fields)


async def test_a_shadow_stands_with_its_own_version_and_claims():
    """Its worker describes it; the policy's own standing is what it would be without."""
    policy = judge(shadow=NEXT)
    claim = pb.Claim(pointers=pb.Claim.Pointers(pointers=["/object/metadata"]))
    said = pb.DescribeResponse(worker="next", version="2")
    said.policies.append(pb.PolicyDescription(name="judge", phases=[pb.PHASE_VALIDATING], inputs=claim))
    async with (
        scripted("judge") as labels,
        scripted(describe=always(said.SerializeToString())) as other,
        working(configured(policy, labels=labels, next=other)) as workers,
    ):
        await until(lambda: described(workers, policy))
        found = shadow_standing(workers, policy)
        assert (found.version, found.inputs) == ("2", Inputs(places=PointerSet([("object", "metadata")])))
        assert workers.availabilities(Phase.VALIDATING).keys() == {policy.qualified_name}
        assert availability(workers) == "1"


async def test_a_shadow_is_called_as_it_is_configured():
    """Another worker, policy and settings; the document and the uid as they are handed over."""
    calls = []

    async def review(request, context):
        calls.append(pb.ReviewRequest.FromString(request).call)
        return answer(allow=pb.Allow(), version="2")

    policy = judge(shadow=Shadow(worker="next", policy="other", settings=b'{"a":1}'))
    async with (
        scripted("judge") as labels,
        scripted(describe=always(description("other", version="2")), review=review) as other,
        working(configured(policy, labels=labels, next=other)) as workers,
    ):
        await until(lambda: described(workers, policy))
        assert await put(workers, policy, version="2", content=b'{"b":2}') == Allow(version="2")
    (call,) = calls
    assert (call.policy, call.settings, call.document, call.uid) == ("other", b'{"a":1}', b'{"b":2}', "u1")


async def test_the_start_does_not_wait_for_a_shadow():
    """A worker that is only called as a shadow holds up no start, even one that waits for ever for all others."""
    policy = judge(shadow=NEXT)
    async with (
        asyncio.timeout(30),
        scripted("judge") as labels,
        working(configured(policy, labels=labels, next=NO_CONSUMER), wait=1_000_000) as workers,
    ):
        assert availability(workers) == "1"
        assert not described(workers, policy)
        await until(lambda: isinstance(shadow_standing(workers, policy), Unavailable))
        assert shadow_standing(workers, policy).failure.reason is Reason.CONFIGURATION


async def test_a_worker_of_policies_and_shadows_is_waited_for():
    """As the worker of its policies it is."""
    one, other = judge(shadow=NEXT), judge("other", index=1)
    other = replace(other, worker="next")
    async with (
        scripted("judge") as labels,
        scripted("judge", "other") as both,
        working(configured(one, other, labels=labels, next=both)) as workers,
    ):
        assert (availability(workers), availability(workers, "other")) == ("1", "1")


async def test_settings_that_hang_for_a_shadow_hold_up_no_policy_of_that_worker():
    """It is one worker; the policy stands, and is called."""
    hanging = Hanging()

    async def validate(request, context):
        if pb.ValidateSettingsRequest.FromString(request).policy == "other":
            return await hanging(request, context)
        return b""

    policy = judge(shadow=SAME_WORKER)
    async with (
        scripted("judge", "other", validate=validate) as target,
        working(configured(policy, labels=target), describe_seconds=1000.0) as workers,
    ):
        assert availability(workers) == "1"
        await asyncio.wait_for(hanging.called.wait(), 10)
        assert await called(workers, policy) == Allow()
        assert not described(workers, policy)


async def test_settings_that_are_refused_are_the_shadows_trouble():
    """The shadow cannot be called, and says why; its policy can."""
    refused = pb.ValidateSettingsResponse(errors=[pb.SettingsError(pointer="/a", message="is odd")])
    policy = judge(shadow=NEXT)
    async with (
        scripted("judge") as labels,
        scripted("judge", validate=always(refused.SerializeToString())) as other,
        working(configured(policy, labels=labels, next=other)) as workers,
    ):
        refusal = "worker 'next' refuses the settings: settings/a: is odd"
        await until(lambda: getattr(shadow_standing(workers, policy), "why", None) is UnavailableReason.SETTINGS)
        assert shadow_standing(workers, policy).message == refusal
        assert availability(workers) == "1"


async def test_what_a_shadow_answers_unsettles_no_worker():
    """An answer in a version without a description would keep a policy of the worker from its cache; a shadow's not."""
    policy = judge(shadow=SAME_WORKER)
    said = answer(allow=pb.Allow(), version="unheard-of")
    async with (
        scripted("judge", "other", review=always(said)) as target,
        working(configured(policy, labels=target)) as workers,
    ):
        await until(lambda: described(workers, policy))
        assert workers.settled(question(policy))
        assert (await put(workers, policy)).version == "unheard-of"
        assert workers.settled(question(policy))
        await called(workers, policy)
        assert not workers.settled(question(policy))


async def test_a_shadow_that_comes_and_goes_changes_no_standing():
    """One configuration follows another that differs in a shadow: the policy's standing, identity included, is there
    from the first moment, and so is that of a shadow that stays.
    """
    bare, shadowed = judge(), judge(shadow=NEXT)
    limits = TransportLimits(worker_connections=1)
    async with scripted("judge") as labels, scripted("judge") as other:
        pool = WorkerPool(limits)
        chain = [configured(each, labels=labels, next=other) for each in (bare, shadowed, shadowed, bare)]
        alive = []
        for configuration in chain:
            workers = Workers(configuration, limits, pool=pool, before=alive[-1:])
            await workers.start(wait_seconds=0.0 if alive else 10.0)
            alive.append(workers)
            found = workers.availabilities(Phase.VALIDATING)
            assert isinstance(found.get(bare.qualified_name), Described)
            assert found == alive[0].availabilities(Phase.VALIDATING)
            if len(alive) == 2:
                await until(lambda second=workers: described(second, shadowed))
            if len(alive) == 3:
                assert described(workers, shadowed)
        for workers in alive:
            await workers.close()
        await pool.close()


async def test_a_webhook_can_be_a_shadow():
    """It has nothing to describe, and can be called at once."""
    policy = judge(shadow=Shadow(worker="hooked", policy=""))
    async with scripted("judge") as labels:
        known = configured(policy, labels=labels)
        webhook = Worker(name="hooked", webhook=WebhookTarget(url=f"https://{NO_CONSUMER}/"))
        known = replace(known, workers={**known.workers, "hooked": webhook})
        async with working(known) as workers:
            assert described(workers, policy)
            refused = await put(workers, policy, deadline=asyncio.get_running_loop().time() + 10)
            assert isinstance(refused, Failure)
            assert await called(workers, policy) == Allow()


async def test_a_shadow_whose_call_hangs_is_broken_off_with_it():
    """The call is cancelled: its worker gets the cancel."""
    hanging = Hanging()
    policy = judge(shadow=NEXT)
    async with (
        scripted("judge") as labels,
        scripted("judge", review=hanging) as other,
        working(configured(policy, labels=labels, next=other)) as workers,
    ):
        await until(lambda: described(workers, policy))
        cancel = workers.shadows.call(question(shadow_of(policy)), Reply())
        await asyncio.wait_for(hanging.called.wait(), 10)
        cancel()
        await asyncio.wait_for(hanging.cancelled.wait(), 10)
