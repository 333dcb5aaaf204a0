"""``/always-allow-delay-5s`` and ``/always-deny``."""

import asyncio

import msgspec

from admission_worker import Answer, Request
from admission_worker.samples.agnhost.agnhost_worker import denial, worker


class Delay(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of always-allow-delay-5s.

    Attributes:
        seconds: how long it waits before it allows.
    """

    seconds: int | float = 5


@worker.validating("always-allow-delay-5s", settings=Delay, inputs=[])
async def always_allow_delay_5s(_: Request, settings: Delay) -> Answer | None:
    """Allows everything, after five seconds."""
    await asyncio.sleep(settings.seconds)
    return None


@worker.validating("always-deny", inputs=[])
def always_deny(_: Request) -> Answer:
    """Denies everything."""
    return denial("this webhook denies all requests")
