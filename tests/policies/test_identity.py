"""The identity of a question: what can change a verdict is in it, and nothing else."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.documents.identity import verdict_identity
from gateway.policies.errors import Place
from gateway.policies.model import (
    EVERYTHING,
    Cache,
    FailurePolicy,
    MatchPolicy,
    Mode,
    OnConflict,
    Phase,
    Policy,
    ReinvocationPolicy,
    Requirement,
    Selector,
    Shadow,
    SideEffects,
)
from gateway.policies.workers.targets import (
    GrpcTarget,
    GrpcTls,
    HookTarget,
    QueueTarget,
    ServiceReference,
    WebhookTarget,
    Worker,
)
from gateway.scopes.inputs import Inputs
from gateway.scopes.pointer_set import PointerSet
from gateway.scopes.writes import Writes

SELECTOR = Selector(requirements=(Requirement(key="a", operator="Exists"),))
POLICY = Policy(
    phase=Phase.MUTATING, configuration="c", index=0, name="a.b.c", worker="w", policy="p", rules=(EVERYTHING,)
)
WORKER = Worker(name="w", grpc=GrpcTarget(target="dns:///w:1"))
SERVICE = ServiceReference(namespace="n", name="s")

OUTSIDE = {
    "phase": Phase.VALIDATING,  # a part of the key by itself
    "configuration": "d",
    "index": 1,
    "name": "x.y.z",
    "worker": "v",  # the Worker is handed in
    "rules": (),
    "namespace_selector": SELECTOR,
    "object_selector": SELECTOR,
    "match_conditions": (None,),
    "match_policy": MatchPolicy.EXACT,
    "failure_policy": FailurePolicy.IGNORE,
    "timeout": 1.0,
    "side_effects": SideEffects.NONE_ON_DRY_RUN,
    "reinvocation_policy": ReinvocationPolicy.IF_NEEDED,
    "cache": Cache(ttl=1),
    "on_conflict": OnConflict.DENY,
    "mode": Mode.AUDIT,
    "isolate": True,
    "is_existing": True,
    "contact": "us",
    "documentation": "https://example.com",
    "shadow": Shadow(worker="v", policy="q"),
    "namesake": True,
    "place": Place(file="f", line=9),
    "fault": "broken",
}
INSIDE = {
    "policy": "q",
    "settings": b'{"a":1}',
    "inputs": Inputs(places=PointerSet()),
    "writes": Writes.EVERYTHING,
}


def test_every_field_is_judged():
    """Each field of a policy is listed as inside or outside; a new one must be, too."""
    assert OUTSIDE.keys() | INSIDE.keys() == set(Policy.__struct_fields__)


@pytest.mark.parametrize("field", OUTSIDE)
def test_outside(field):
    """What cannot change a verdict changes no identity: a new timeout flushes nothing."""
    assert verdict_identity(replace(POLICY, **{field: OUTSIDE[field]}), WORKER) == verdict_identity(POLICY, WORKER)


@pytest.mark.parametrize("field", INSIDE)
def test_inside(field):
    """What can change a verdict changes the identity."""
    assert verdict_identity(replace(POLICY, **{field: INSIDE[field]}), WORKER) != verdict_identity(POLICY, WORKER)


@pytest.mark.parametrize(
    "other",
    [
        Worker(name="w", grpc=GrpcTarget(target="dns:///w:1", directory="/elsewhere")),
        Worker(name="w", grpc=GrpcTarget(target="dns:///w:1"), place=Place(file="f", line=9)),
        Worker(name="w", grpc=GrpcTarget(target="dns:///w:1", connections=9)),
    ],
)
def test_where_a_worker_is_written(other):
    """Replicas may mount their files in different directories."""
    assert verdict_identity(POLICY, other) == verdict_identity(POLICY, WORKER)


def test_the_key_of_a_queue():
    """A renewed key, or one that is mounted elsewhere, flushes nothing."""
    one, other = (Worker(name="w", queue=QueueTarget(stream="s", key_file=file)) for file in ("k", "l"))
    assert verdict_identity(POLICY, one) == verdict_identity(POLICY, other)


def test_ca_bundle():
    """A renewed certificate flushes nothing."""
    one, other = (
        Worker(name="w", webhook=WebhookTarget(url="https://h", ca_bundle=bundle)) for bundle in (b"", b"PEM")
    )
    assert verdict_identity(POLICY, one) == verdict_identity(POLICY, other)


def test_authorities_of_a_worker():
    """Nor does a renewed authority of a gRPC worker, nor where certificates lie."""
    tls = GrpcTls(server_name="w")
    one, *others = (
        Worker(name="w", grpc=GrpcTarget(target="dns:///w:1", tls=replace(tls, **change)))
        for change in ({}, {"ca_file": "ca.crt"}, {"ca_bundle": b"PEM"}, {"cert_file": "a", "key_file": "b"})
    )
    assert {verdict_identity(POLICY, other) for other in others} == {verdict_identity(POLICY, one)}


def test_how_a_worker_is_reached():
    """Another worker, or the same one reached otherwise, may answer otherwise: no two of these are the same."""
    workers = [
        WORKER,
        Worker(name="v", grpc=WORKER.grpc),
        Worker(name="w", grpc=GrpcTarget(target="")),
        Worker(name="w", grpc=GrpcTarget(target="", command=("a", "b"))),
        Worker(name="w", grpc=GrpcTarget(target="", command=("ab",))),
        Worker(name="w", grpc=GrpcTarget(target="", command=("b", "a"))),
        Worker(name="w", grpc=GrpcTarget(target="dns:///w:1", tls=GrpcTls(server_name="w"))),
        Worker(name="w", grpc=GrpcTarget(target="dns:///w:1", tls=GrpcTls(server_name="v"))),
        Worker(name="w", queue=QueueTarget(stream="s", key_file="k")),
        Worker(name="w", queue=QueueTarget(stream="t", key_file="k")),
        Worker(name="w", hook=HookTarget(path="h")),
        Worker(name="w", hook=HookTarget(path="i")),
        Worker(name="w", hook=HookTarget(path="h", snapshots_of=(("v1", "Pod"),))),
        Worker(name="w", hook=HookTarget(path="h", objects=(b"{}",))),
        Worker(name="w", webhook=WebhookTarget(url="dns:///w:1")),
        Worker(name="w", webhook=WebhookTarget(url="https://h/p")),
        Worker(name="w", webhook=WebhookTarget(url="https://h/p", review_versions=("v1beta1",))),
        *(
            Worker(name="w", webhook=WebhookTarget(service=replace(SERVICE, **change)))
            for change in ({}, {"namespace": "m"}, {"name": "t"}, {"path": "/p"}, {"port": 8443})
        ),
    ]
    assert len({verdict_identity(POLICY, worker) for worker in workers}) == len(workers)


def test_scopes():
    """Everything, nothing, the default and each grant are different; how a grant was written is not."""
    policies = [
        *(replace(POLICY, inputs=Inputs(places=places)) for places in (None, PointerSet(), PointerSet([("a",)]))),
        replace(POLICY, writes=Writes(granted=PointerSet())),
        replace(POLICY, writes=Writes(granted=PointerSet([("a",)]))),
        replace(POLICY, writes=Writes.EVERYTHING),
    ]
    assert len({verdict_identity(policy, WORKER) for policy in policies}) == len(policies)
    one, other = (
        replace(POLICY, inputs=Inputs(places=PointerSet(pointers)))
        for pointers in ([("a",), ("b",)], [("b",), ("a", "c"), ("a",)])
    )
    assert verdict_identity(one, WORKER) == verdict_identity(other, WORKER)


def test_it_is_written_down():
    """The identity is the same in every process and on every machine, and changes only on purpose: see _FORMAT."""
    assert verdict_identity(POLICY, WORKER).hex() == (
        "780f05a0fcd1d0a0a5c72ec825de368f9880323acb08a6cf1f240e08e46fb593"
    )


TEXT = st.sampled_from(["", "a", "b", "1:a,", "everything", "absent", "/a", ","]) | st.text(max_size=4)
PLACES = st.none() | st.lists(st.lists(TEXT, max_size=2).map(tuple), max_size=3).map(PointerSet)
POLICIES = st.builds(
    lambda policy, settings, inputs, granted, protects: replace(
        POLICY,
        policy=policy,
        settings=settings.encode("utf-8", "replace"),
        inputs=Inputs(places=inputs),
        writes=Writes(granted=granted, protects=protects),
    ),
    TEXT,
    TEXT,
    PLACES,
    PLACES,
    st.booleans(),
)
WORKERS = st.builds(
    lambda name, target, command: Worker(name=name, grpc=GrpcTarget(target=target, command=tuple(command))),
    TEXT,
    TEXT,
    st.lists(TEXT, max_size=3),
)


@pytest.mark.property
@given(POLICIES, WORKERS, POLICIES, WORKERS)
def test_framing(policy, worker, other_policy, other_worker):
    """No two different questions are the same bytes, whatever their parts hold: 32 of them, always the same."""
    assume((policy, worker) != (other_policy, other_worker))
    identity = verdict_identity(policy, worker)
    assert len(identity) == 32
    assert identity == verdict_identity(policy, worker)
    assert identity != verdict_identity(other_policy, other_worker)


@pytest.mark.property
@given(POLICIES, WORKERS, POLICIES, WORKERS, st.sets(st.integers(0, 6), min_size=1, max_size=1))
def test_each_part_counts(policy, worker, other_policy, other_worker, parts):
    """Two questions that differ in one part only are different ones."""
    (part,) = parts
    names = ("policy", "settings", "inputs", "writes", "name", "target", "command")
    name = names[part]
    if name in INSIDE:
        changed, reached = replace(policy, **{name: getattr(other_policy, name)}), worker
    elif name == "name":
        changed, reached = policy, replace(worker, name=other_worker.name)
    else:
        grpc = replace(worker.grpc, **{name: getattr(other_worker.grpc, name)})
        changed, reached = policy, replace(worker, grpc=grpc)
    is_same = (changed, reached) == (policy, worker)
    assert (verdict_identity(changed, reached) == verdict_identity(policy, worker)) is is_same
