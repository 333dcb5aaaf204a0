"""Work in threads gives the loop the interpreter when it wants it."""

import asyncio
import sys
import threading

import pytest

from gateway.serving.threads import in_thread
from tests.serving.conftest import WAIT_SECONDS


async def test_the_switch_interval_is_short_while_any_works():
    """Those that overlap leave it as it was before the first, in whatever order they end."""
    before = sys.getswitchinterval()
    ends = [threading.Event(), threading.Event()]
    works = [asyncio.create_task(in_thread(lambda end=end: end.wait(WAIT_SECONDS))) for end in ends]
    await asyncio.sleep(0)
    intervals = [sys.getswitchinterval()]
    for end, work in zip(ends, works, strict=True):
        end.set()
        assert await work
        intervals.append(sys.getswitchinterval())
    assert intervals == [0.0005, 0.0005, before]
    assert before > 0.0005


async def test_the_interval_is_as_before_after_an_error_too():
    """The error is the caller's."""
    before = sys.getswitchinterval()
    with pytest.raises(ZeroDivisionError):
        await in_thread(lambda: 1 / 0)
    assert sys.getswitchinterval() == before
