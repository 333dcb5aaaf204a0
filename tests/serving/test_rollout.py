"""From one configuration to the next: who is in force, who waits, who retires, and that nothing is left of them."""

import asyncio
import gc
import weakref

import pytest

from gateway.deciding.plan import Described
from gateway.deciding.verdicts import Failure
from gateway.policies.model import Configuration, Phase
from gateway.reasons import Reason
from gateway.serving.loaded_configuration import LoadedConfiguration, Target
from gateway.serving.rollout import Rollout
from gateway.transports.limits import TransportLimits
from tests.world import policy

AWAY = Failure(reason=Reason.CONFIGURATION, message="away")


class Told:
    """What a rollout tells, in order."""

    def __init__(self):
        self.events = []

    def waiting(self, blockers):
        self.events.append(("waiting", [blocker.policy for blocker in blockers]))

    def adopted(self, generation):
        self.events.append(("adopted", len(generation.configuration.validating)))

    def retired(self):
        self.events.append("retired")

    def failed(self, error):
        self.events.append(("failed", str(error)))


def chain(*names):
    """A configuration of validating policies whose workers are nowhere: their standings are the test's to give."""
    return Configuration(
        validating=tuple(policy(name, phase=Phase.VALIDATING, index=index) for index, name in enumerate(names))
    )


def stand(generation, **standings):
    """Say who can be asked."""
    for about in generation.configuration.validating:
        if about.policy in standings:
            standing = standings[about.policy]
            described = Described(version=standing) if isinstance(standing, str) else standing
            generation.workers._standings.set(about, described)
    generation._standings_changed()


async def settled():
    """Let everything happen that can."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
async def rollout():
    """A rollout whose first configuration has the policies a and b, both described."""
    told = Told()
    made = Rollout(chain("a", "b"), (), limits=TransportLimits(), wait_seconds=0, events=told)
    made.told = told.events
    await made.start()
    stand(made.current, a="1", b="1")
    yield made
    await made.close()


async def test_what_loses_no_policy_is_adopted(rollout):
    """A candidate without a policy that was removed is in force at once."""
    await rollout.propose(chain(), ())
    await settled()
    assert rollout.told == [("adopted", 0), "retired"]
    assert rollout.current.configuration.validating == ()


async def test_a_candidate_waits_for_every_policy_that_could_be_asked(rollout):
    """It is in force when the last of them can be asked, and not before; each change of who is missing is told."""
    await rollout.propose(chain("a", "b"), ())
    await settled()
    candidate, first = rollout.candidate, rollout.current
    stand(candidate, a="2", b=AWAY)
    await settled()
    stand(candidate, b=AWAY)
    await settled()
    assert rollout.current is first
    stand(candidate, b="2")
    await settled()
    assert rollout.current is candidate
    names = [f"test/{name}.test.example.com" for name in "ab"]
    assert rollout.told == [("waiting", names), ("waiting", names[1:]), ("adopted", 2), "retired"]


async def test_who_could_not_be_asked_before_holds_nobody_up(rollout):
    """Neither a new policy, nor one that had no standing, nor one that has lost it while the candidate waits."""
    stand(rollout.current, b=AWAY)
    await rollout.propose(chain("a", "b", "c"), ())
    await settled()
    assert rollout.told == [("waiting", ["test/a.test.example.com"])]
    stand(rollout.current, a=AWAY)
    await settled()
    assert rollout.told[1] == ("adopted", 3)


async def test_a_newer_candidate_takes_the_place_of_one_that_waits(rollout):
    """There is one at most; the older one is never adopted, whatever becomes of its workers."""
    await rollout.propose(chain("a", "b"), ())
    await settled()
    older = rollout.candidate
    await rollout.propose(chain(), ())
    stand(older, a="2", b="2")
    await settled()
    assert rollout.told[1:] == [("adopted", 0), "retired"]
    assert older not in rollout._alive


async def test_a_generation_lives_until_its_last_review_is_decided(rollout):
    """It is retired when nobody is decided there any more."""
    first = rollout.current
    first.begin()
    first.begin()
    await rollout.propose(chain(), ())
    await settled()
    first.end()
    await settled()
    assert rollout.told == [("adopted", 0)]
    assert first.plan(Target(Phase.VALIDATING)) is not None
    first.end()
    await settled()
    assert rollout.told == [("adopted", 0), "retired"]


async def test_a_retired_generation_is_freed(rollout):
    """Without the collector: nobody refers to it."""
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
    """It is told, what is in force stays in force, and the next one is tried."""

    async def broken(self, *, wait_seconds):
        raise RuntimeError("planted")

    first = rollout.current
    with monkeypatch.context() as patched:
        patched.setattr(LoadedConfiguration, "start", broken)
        await rollout.propose(chain("a"), ())
        await settled()
    assert (rollout.told, rollout.current, rollout.candidate) == ([("failed", "planted")], first, None)
    await rollout.propose(chain(), ())
    await settled()
    assert rollout.told[1:] == [("adopted", 0), "retired"]


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
        Rollout(Configuration(fatal=True), (), limits=TransportLimits(), wait_seconds=0, events=Told())
