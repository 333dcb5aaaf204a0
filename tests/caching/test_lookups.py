"""Every lookup in Redis ends, whatever the loop and the link do meanwhile."""

import asyncio

from gateway.caching.limits import CacheLimits
from gateway.caching.link import LinkError
from gateway.caching.lookups import Lookups
from tests.caching.world import turns


class LostLink:
    """A link that goes down."""

    async def execute(self, commands):
        raise LinkError

    def late(self):
        """A pipeline was late."""


async def test_a_lookup_ends_if_the_link_is_lost_before_it_is_sent():
    """The loop was busy for all of the budget of a first lookup; a second one came, and then the link was given up."""
    lookups, found = Lookups(LostLink(), CacheLimits(redis_seconds=60.0)), []
    lookups.look_up(["first"], found.append)
    lookups._ring(lookups._current)
    lookups.look_up(["second"], found.append)
    await asyncio.sleep(0)
    lookups.give_up()
    await turns()
    assert found == [None, None]
