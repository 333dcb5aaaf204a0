"""From what a worker says of itself to the standings of its policies: claims, identity, and what the log says of it."""

from gateway.documents.identity import verdict_identity
from gateway.engine.plan import Described, Unavailable, UnavailableReason
from gateway.policies.model import Configuration
from gateway.policies.workers.targets import GrpcTarget, Worker
from gateway.reasons import Reason
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer import parse_pointer
from gateway.scopes.pointer_set import PointerSet
from gateway.scopes.writes import Writes
from gateway.transports.limits import TransportLimits
from gateway.transports.proto.admission.worker.v1 import worker_pb2 as pb
from gateway.transports.worker_pool import WorkerPool
from gateway.transports.workers import Workers
from tests.integration.running import until
from tests.integration.workers import always, description, scripted
from tests.transports.reaching import configured, judge, working
from tests.world import policy

LABELS = "/object/metadata/labels"


def inputs(*texts):
    return Inputs(places=PointerSet(parse_pointer(text) for text in texts))


def claiming(*, inputs=None, writes=None, **fields):
    """A worker that holds the policies "judge" and "change", each with these claims."""
    said = pb.DescribeResponse.FromString(description("judge", "change"))
    for entry in said.policies:
        for claim, pointers in ((entry.inputs, inputs), (entry.writes, writes)):
            if pointers is not None:
                claim.pointers.SetInParent()
                claim.pointers.pointers.extend(pointers)
    return scripted(describe=always(said.SerializeToString()), **fields)


def change(**fields):
    return policy("change", worker="labels", **fields)


def changing(target, **fields):
    """A configuration of one mutating policy."""
    worker = Worker(name="labels", grpc=GrpcTarget(target=target))
    return Configuration(workers={"labels": worker}, mutating=(change(**fields),))


def availability(workers, about):
    return workers.availabilities(about.phase).get(about.qualified_name)


async def test_a_policy_without_claims_stands_as_granted():
    """Nothing is narrowed, and the identity is that of the configuration."""
    async with scripted("judge") as target, working(configured(judge(), labels=target)) as workers:
        worker = Worker(name="labels", grpc=GrpcTarget(target=target))
        identity = verdict_identity(judge(), worker)
        assert availability(workers, judge()) == Described(version="1", identity=identity)
    assert len(identity) == 32


async def test_claims_narrow_what_a_policy_is_shown_and_may_change():
    """The standing holds the claimed part of each grant."""
    claims = {"inputs": [LABELS], "writes": ["/metadata/labels"]}
    async with claiming(**claims) as target, working(changing(target)) as workers:
        found = availability(workers, change())
    assert found.inputs == inputs(LABELS)
    assert found.writes == Writes.DEFAULT.narrowed_to(PointerSet([("metadata", "labels")]))


async def test_a_claim_beyond_the_grant_is_a_configuration_failure():
    """The policy that it is about cannot be called, and the message names worker, policy, places and remedy; others
    can be.
    """
    narrow = judge(inputs=inputs("/object/spec"))
    wide = judge("wide", index=1, policy="judge")
    async with claiming(inputs=[LABELS]) as target, working(configured(narrow, wide, labels=target)) as workers:
        assert availability(workers, narrow) == Unavailable(
            why=UnavailableReason.CLAIMS,
            message="worker 'labels' cannot be called: it claims inputs for policy 'judge' that are not granted: "
            f"{LABELS}; granted is /object/spec; grant them in the policy's inputs, or use a version of the worker "
            "that claims less",
            field="inputs",
        )
        assert isinstance(availability(workers, wide), Described)


async def test_a_claim_that_is_no_pointer_is_a_configuration_failure():
    """As if it stood in the configuration."""
    async with claiming(inputs=["object"]) as target, working(configured(judge(), labels=target)) as workers:
        failure = availability(workers, judge())
    assert failure.failure.reason is Reason.CONFIGURATION
    assert "worker 'labels' cannot be called: its claim of inputs for policy 'judge' is invalid: " in failure.message
    assert "inputs[0]" in failure.message


async def test_the_log_says_what_each_policy_is_shown(log):
    """Once for each change of its standing, bounded, however many connections say it."""
    many = [f"/object/{'x' * 1000}{number}" for number in range(100)]
    async with claiming(inputs=many, writes=["/metadata/labels"]) as target:
        async with working(changing(target)):
            pass
        async with working(configured(judge(), labels=target)):
            pass
    changing_, judging = [entry for entry in log if entry["event"] == "a policy can be called"]
    assert changing_["policy"] == "test/change.test.example.com"
    assert changing_["shown"].startswith('"/object/xxx')
    assert changing_["shown"].endswith(" and 92 more")
    assert len(changing_["shown"]) < 2000
    assert changing_["may_change"] == "/metadata/labels"
    assert "may_change" not in judging


async def test_a_policy_that_did_not_change_is_not_logged_again(tmp_path, log):
    """A reload of thousands of policies logs the new ones, of which one has another name for the same."""
    address, limits = f"unix:{tmp_path}/w.sock", TransportLimits()
    pool, renamed = WorkerPool(limits), policy("other", worker="labels", policy="judge")
    before = Workers(configured(judge(), labels=address), limits, pool=pool)
    after = Workers(configured(judge(), renamed, labels=address), limits, pool=pool, before=(before,))
    try:
        async with scripted("judge", address=address):
            await before.start(wait_seconds=10)
            await after.start(wait_seconds=10)
            await until(lambda: len(names(log)) == 2)
        assert names(log) == [judge().qualified_name, renamed.qualified_name]
    finally:
        await after.close()
        await before.close()
        await pool.close()


def names(log):
    """The policies that can be called, as the log says."""
    return [entry["policy"] for entry in log if entry["event"] == "a policy can be called"]


async def test_another_grant_is_another_question(tmp_path):
    """A policy whose inputs have changed is described anew, and does not keep the standing that it had before."""
    address = f"unix:{tmp_path}/w.sock"
    pool = WorkerPool(TransportLimits())
    before = Workers(configured(judge(), labels=address), pool=pool)
    same = Workers(configured(judge(), labels=address), pool=pool, before=(before,))
    other = Workers(configured(judge(inputs=inputs(LABELS)), labels=address), pool=pool, before=(before,))
    try:
        async with scripted("judge", address=address):
            await before.start(wait_seconds=10)
        await until(lambda: not before._leased["labels"].connection.is_connected)
        await same.start()
        await other.start()
        assert isinstance(availability(same, judge()), Described)
        await until(lambda: availability(other, judge()) is not None)
        assert availability(other, judge()).failure.reason is Reason.CONFIGURATION
    finally:
        for workers in (same, other, before):
            await workers.close()
        await pool.close()
