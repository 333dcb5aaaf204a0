"""From one configuration to the next: who is in force, in which version, who retires, and that nothing is left."""

import asyncio
import gc
import weakref

import pytest
from msgspec.structs import replace

from gateway.engine.plan import Described, Unavailable, UnavailableReason
from gateway.policies.model import Configuration, FailurePolicy, Phase, Policy, Shadow
from gateway.policies.workers.targets import QueueTarget, Worker
from gateway.registration.entries import make_entries
from gateway.registration.registered_entries import registered_entries
from gateway.serving.configuration_switch import ConfigurationSwitch
from gateway.serving.loaded_configuration import LoadedConfiguration
from gateway.serving.plans import Target
from gateway.transports.limits import TransportLimits
from gateway.transports.worker_descriptions import policy_key
from gateway.transports.workers import Workers
from tests.world import policy

REFUSED = Unavailable(why=UnavailableReason.SETTINGS, message="refused")
NOWHERE = Worker(name="labels", queue=QueueTarget(stream="nowhere", key_file=""))


class Reports:
    """The reports of a switch, in order."""

    def __init__(self):
        self.events = []
        self.degraded = {}

    def availability(self, configuration):
        self.degraded = {
            each.policy.policy: (str(each.availability.why), each.last_good) for each in configuration.unavailable()
        }

    def adopted(self, generation):
        self.events.append(("adopted", len(generation.configuration.validating)))

    async def known(self, configuration):
        """The counters are not judged here."""

    def entries(self, configuration):
        self.events.append(("learnt", len(configuration.former)))

    async def retired(self):
        self.events.append("retired")

    def failed(self, error):
        self.events.append(("failed", str(error)))


def chain(*policies):
    """A configuration of validating policies whose worker is nowhere: their standings are the test's to give."""
    made = (each if isinstance(each, Policy) else judging(each, index=index) for index, each in enumerate(policies))
    return Configuration(workers={"labels": NOWHERE}, validating=tuple(made))


def judging(name, **fields):
    return policy(name, phase=Phase.VALIDATING, worker="labels", **fields)


def stand(loaded, workers=None, **availabilities):
    """Their worker has described itself: of the policies as they are configured, or of those of other workers."""
    workers = workers or loaded.workers
    for name, worker_descriptions in workers._worker_descriptions.items():
        for about in workers._policies[name]:
            if about.policy in availabilities:
                availability = availabilities[about.policy]
                described = Described(version=availability) if isinstance(availability, str) else availability
                key = policy_key(about)
                worker_descriptions._set({key: worker_descriptions._fitting(key, described)})
        worker_descriptions._known()
    loaded._availabilities_changed()


def members(loaded):
    """Who judges: each policy's name, its settings, and whether it can be called."""
    plan = loaded.plan(Target(Phase.VALIDATING))
    return [(each.policy.policy, each.policy.settings, each.unavailable is None) for each in plan.members]


async def settled():
    """Let everything happen that can."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
async def rollout(monkeypatch):
    """A rollout whose first configuration has the policies a and b, both described. No worker says anything itself."""

    async def silent(self, worker):
        pass

    monkeypatch.setattr(Workers, "_reach_and_describe", silent)
    reported = Reports()
    made = ConfigurationSwitch(chain("a", "b"), (), limits=TransportLimits(), wait_seconds=1000, report=reported)
    made.counted = reported
    starting = asyncio.create_task(made.start())
    await settled()
    stand(made.current, a="1", b="1")
    await starting
    yield made
    await made.close()


async def test_what_loses_no_policy_is_adopted(rollout):
    """A candidate without a policy that was removed is in force at once."""
    await rollout.propose(chain(), ())
    await settled()
    assert rollout.counted.events == [("adopted", 0), "retired"]
    assert rollout.current.configuration.validating == ()


async def test_entries_that_are_made_before_are_not_made_again(rollout):
    """A reload makes them in a thread."""
    configuration = chain()
    entries = make_entries(configuration)
    await rollout.propose(configuration, (), entries)
    await settled()
    assert rollout.current.entries is entries


ONE, TWO, THREE = b'{"n":1}', b'{"n":2}', b'{"n":3}'


async def reloaded(rollout, *policies, worker=NOWHERE, **availabilities):
    """Follow by a chain of these policies, described so before it is in force; the configuration that is in force."""
    await rollout.propose(replace(chain(*policies), workers={"labels": worker}), ())
    await settled()
    if rollout.candidate is not None:  # else all of them had a standing already
        stand(rollout.candidate, **availabilities)
        await settled()
    return rollout.current


async def test_who_is_refused_keeps_its_last_good_version_and_the_others_change(rollout):
    """The policy of that name is called as it was, at its place in the new chain; a new policy fails."""
    new = [judging("new"), judging("b", settings=TWO, index=1), judging("a", settings=TWO, index=2)]
    loaded = await reloaded(rollout, *new, new=REFUSED, b="2", a=REFUSED)
    assert members(loaded) == [("new", b"{}", False), ("b", TWO, True), ("a", b"{}", True)]
    assert rollout.counted.degraded == {"new": ("settings", False), "a": ("settings", True)}
    assert rollout.counted.events == [("adopted", 3), "retired"]


async def test_what_was_replaced_is_freed_at_once(rollout):
    """No collection needs to look for it: 10,000 policies would stay for many reloads."""
    refused = await reloaded(rollout, judging("a", settings=TWO), a=REFUSED)
    shadowed = judging("b", index=1, shadow=Shadow(worker="labels", policy="b-next"))
    (kept,) = refused._last_good.workers
    parts = [
        weakref.ref(each) for each in (refused, refused.workers, refused.workers.shadows, refused._last_good, kept)
    ]
    del refused, kept
    gc.disable()
    try:
        for policies in ([judging("a", settings=THREE), shadowed], [judging("a", settings=ONE)]):
            loaded = await reloaded(rollout, *policies, a="3", b="1")
            parts += [weakref.ref(each) for each in (loaded, loaded.workers, loaded.workers.shadows)]
        del loaded
        assert [part() is None for part in parts[:-3]] == [True] * (len(parts) - 3)
    finally:
        gc.enable()


async def test_the_last_good_version_outlives_several_reloads(rollout):
    """Refused again and again, in other words each time: it is the version that was good, not the one before."""
    for settings in (TWO, THREE):
        loaded = await reloaded(rollout, judging("a", settings=settings), a=REFUSED)
        assert members(loaded) == [("a", b"{}", True)]
    loaded = await reloaded(rollout, judging("a", settings=ONE), a="2")
    loaded = await reloaded(rollout, judging("a", settings=TWO), a=REFUSED)
    assert members(loaded) == [("a", ONE, True)]


async def test_who_had_no_good_version_fails(rollout):
    """At a start, in reload after reload; and a name that was removed in between is a new one."""
    await reloaded(rollout, "a")
    loaded = await reloaded(rollout, "a", judging("b", settings=TWO), a="1", b=REFUSED)
    assert members(loaded) == [("a", b"{}", True), ("b", TWO, False)]
    loaded = await reloaded(rollout, judging("b", settings=THREE), b=REFUSED)
    assert members(loaded) == [("b", THREE, False)]


async def test_the_version_that_is_good_by_now_takes_over_and_the_old_one_goes(rollout):
    """The configuration is renewed: it does not count as a reload, and the old version's workers stay."""
    refused = await reloaded(rollout, judging("a", settings=TWO), a=REFUSED)
    rollout.counted.events.clear()
    stand(refused, a="2")
    assert members(refused) == [("a", TWO, True)]
    await settled()
    assert rollout.current is not refused
    assert rollout.current.configuration is refused.configuration
    assert rollout.current.loaded == refused.loaded
    assert rollout.current.all_workers == (rollout.current.workers,)
    assert (rollout.counted.events, rollout._alive) == (["retired"], {rollout.current})


async def test_a_last_good_version_that_its_worker_gives_up_is_none(rollout):
    """Then the policy fails as it is configured, and for that reason."""
    loaded = await reloaded(rollout, judging("a", settings=TWO), a=REFUSED)
    (kept,) = loaded._last_good.workers
    stand(loaded, kept, a=Unavailable(why=UnavailableReason.UNKNOWN_POLICY, message="gone"))
    await settled()
    assert members(loaded) == [("a", TWO, False)]
    assert rollout.counted.degraded == {"a": ("settings", False)}
    loaded = await reloaded(rollout, judging("a", settings=THREE), a=REFUSED)
    assert members(loaded) == [("a", THREE, False)]


async def test_versions_of_one_worker_name_are_called_where_each_was(rollout):
    """Two policies whose last good versions name Workers of one name, that were not the same, keep one each."""
    moved = replace(NOWHERE, queue=QueueTarget(stream="elsewhere", key_file=""))
    await reloaded(rollout, judging("a", settings=TWO), "b", worker=moved, a=REFUSED, b="2")
    refused = [judging(name, settings=TWO) for name in "ab"]
    loaded = await reloaded(rollout, *refused, a=REFUSED, b=REFUSED)
    assert members(loaded) == [("a", b"{}", True), ("b", b"{}", True)]
    streams = {
        policy.policy: workers._configuration.workers["labels"].queue.stream
        for workers in loaded._last_good.workers
        for policy in workers._policies["labels"]
    }
    assert streams == {"a": "nowhere", "b": "elsewhere"}


async def test_an_entry_holds_the_policies_that_are_registered(rollout):
    """Another failurePolicy splits an entry: a last good version stands in the entry that it is registered in now."""
    refused = judging("a", settings=TWO, failure_policy=FailurePolicy.IGNORE)
    loaded = await reloaded(rollout, refused, judging("b", index=1), a=REFUSED, b="1")
    plans = {
        entry.name.removeprefix("group."): [
            member.policy.failure_policy for member in loaded.plan(Target(entry.phase, entry.name)).members
        ]
        for entry in loaded.entries.validating
    }
    assert plans == {"a.test.example.com": [FailurePolicy.FAIL], "b.test.example.com": [FailurePolicy.FAIL]}


async def test_the_registered_paths_are_known_whatever_was_registered(rollout):
    """By the configuration in force, by the candidate, and by those that follow."""
    (entry,) = make_entries(chain("x", "b")).validating
    path = entry.path

    def judges():
        loaded = rollout.current
        return [each.policy.policy for each in loaded.plan(loaded.targets[path]).members]

    await rollout.propose(chain("c", "b"), ())
    await settled()
    rollout.registered(((Phase.VALIDATING, registered_entries((entry,))),))
    assert judges() == ["a", "b"]
    assert rollout.current.is_outdated(rollout.current.targets[path])
    stand(rollout.candidate, c="1", b="1")
    await settled()
    assert judges() == ["c", "b"]
    await reloaded(rollout, "b", "d", d="1", b="1")
    assert judges() == ["b", "d"]
    await reloaded(rollout, "x", "b", x="1", b="1")
    assert judges() == ["x", "b"]
    assert not rollout.current.is_outdated(rollout.current.targets[path])


async def test_a_renewal_that_is_given_up_is_due_again(rollout):
    """A reload that comes to nothing takes its place; afterwards it is tried again."""
    refused = await reloaded(rollout, judging("a", settings=TWO), a=REFUSED)
    stand(refused, a="2")
    await rollout.withdraw()
    await settled()
    assert rollout.current is not refused
    assert rollout.current.all_workers == (rollout.current.workers,)


async def test_a_newer_candidate_takes_the_place_of_one_that_is_tried(rollout):
    """There is one at most; the older one is never adopted, whatever becomes of its workers."""
    await rollout.propose(chain("a", "b"), ())
    older = rollout.candidate
    await rollout.propose(chain(), ())
    stand(older, a="2", b="2")
    await settled()
    assert rollout.counted.events == [("adopted", 0), "retired"]
    assert older not in rollout._alive


async def test_a_generation_lives_until_its_last_review_is_decided(rollout):
    """It is retired when it decides no review any more."""
    first = rollout.current
    first.begin()
    first.begin()
    await rollout.propose(chain(), ())
    await settled()
    first.end()
    await settled()
    assert rollout.counted.events == [("adopted", 0)]
    assert first.plan(Target(Phase.VALIDATING)) is not None
    first.end()
    await settled()
    assert rollout.counted.events == [("adopted", 0), "retired"]


async def test_a_retired_generation_is_freed(rollout):
    """Without the collector: there is no reference to it."""
    gc.collect()
    gc.disable()
    try:
        gone = weakref.ref(rollout.current)
        await rollout.propose(chain(), ())
        await settled()
        assert gone() is None
    finally:
        gc.enable()


async def test_a_candidate_that_breaks_us_is_given_up(rollout, monkeypatch):
    """It is reported, the configuration in force stays, and the next one is tried."""

    async def broken(self, *, wait_seconds):
        raise RuntimeError("planted")

    first = rollout.current
    with monkeypatch.context() as patched:
        patched.setattr(LoadedConfiguration, "start", broken)
        await rollout.propose(chain("a"), ())
        await settled()
    assert (rollout.counted.events, rollout.current, rollout.candidate) == ([("failed", "planted")], first, None)
    await rollout.propose(chain(), ())
    await settled()
    assert rollout.counted.events[1:] == [("adopted", 0), "retired"]


async def test_closing_leaves_nothing(rollout):
    """Neither a candidate that waits nor a generation whose reviews never end."""
    rollout.current.begin()
    await rollout.propose(chain(), ())
    await settled()
    stand(rollout.current)
    await rollout.propose(chain("a"), ())
    await rollout.close()
    assert rollout._alive == set()
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_what_has_no_known_chain_is_never_served():
    """A fatal configuration is refused."""
    with pytest.raises(ValueError, match="chain is not known"):
        ConfigurationSwitch(Configuration(fatal=True), (), limits=TransportLimits(), wait_seconds=0, report=Reports())
