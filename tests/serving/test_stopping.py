"""The end of a gateway: what goes wrong in it is said."""

import asyncio
from dataclasses import dataclass

import pytest

from gateway.serving.lifecycle import handle_exception, serve_until


@dataclass
class Stoppable:
    """A gateway of which only the end is of interest; ``ends`` is what stopping comes to."""

    ends: list
    drain_seconds: float = 0.0

    async def stop(self, *, drain=True):
        end = self.ends.pop(0)
        if isinstance(end, Exception):
            raise end
        if end is not None:
            end.set()
            await asyncio.Event().wait()


async def test_an_error_while_stopping_is_not_lost():
    """An exception while draining reaches the caller, instead of ending as if all were well."""
    stop = asyncio.Event()
    stop.set()
    with pytest.raises(OSError, match="gone"):
        await serve_until(stop, Stoppable(ends=[OSError("gone")]))


async def test_a_drain_that_is_broken_off_is_no_error():
    """A second signal ends the drain, stops at once, and leaves no task."""
    stop, draining = asyncio.Event(), asyncio.Event()
    stop.set()
    gateway = Stoppable(ends=[draining, None])
    serving = asyncio.create_task(serve_until(stop, gateway))
    await draining.wait()
    stop.set()
    await asyncio.wait_for(serving, 60)
    assert gateway.ends == []
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize(
    ("message", "exception", "logged"),
    [
        ("Fatal error on SSL protocol", RuntimeError("unable to perform operation on <T>; the handler is closed"), 0),
        ("Fatal error on SSL protocol", RuntimeError("deque index out of range"), 1),
        ("Task exception was never retrieved", ValueError("the handler is closed"), 1),
    ],
)
async def test_a_tls_connection_that_ended_while_it_was_read_is_no_error(message, exception, logged, caplog):
    """uvloop reports it as a fatal error; all others are logged."""
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(handle_exception)
    loop.call_exception_handler({"message": message, "exception": exception})
    assert len([each for each in caplog.records if each.name == "asyncio"]) == logged
