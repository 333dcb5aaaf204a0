"""The longest call of the event loop, for each of the largest things that clients and workers may send.

Nothing else is served during a call of the loop. So what is large is read, parsed, judged, encoded and written in
several; none of them should take longer than 50 ms, whatever is sent. The gateway runs in this process, on asyncio's
own loop, because that of uvloop cannot be watched; its worker is a process of its own. The time is that of the loop's
thread on the processor: other programs make it little longer. Of several reviews the shortest of the longest calls is
printed, and which call that was. Exit code 1: one takes more than 50 ms. Repeat it with ``make bench-holds``.
"""

import asyncio
import io
import socket
import ssl
import sys
import tempfile
import time
from http.client import HTTPResponse
from pathlib import Path

from heavy import CHANGES, CHANGING, KINDS, large_of, worker_of
from reviews import CONFIGURATION
from served import Load, here, request

from gateway.telemetry.logs import configure_logs

MOST_SECONDS = 0.05
REVIEWS = 4


class Watch:
    """The longest call of the loop since ``reset``, and where it began."""

    def __init__(self) -> None:
        self.seconds, self.where = 0.0, ""
        run = asyncio.Handle._run  # noqa: SLF001 - there is no other place

        def watched(handle: asyncio.Handle) -> None:
            where, began = position(handle), time.thread_time()
            run(handle)
            if (spent := time.thread_time() - began) > self.seconds:
                self.seconds, self.where = spent, where

        asyncio.Handle._run = watched  # type: ignore[assignment,method-assign] # noqa: SLF001

    def reset(self) -> None:
        """Forget it."""
        self.seconds, self.where = 0.0, ""


def position(handle: asyncio.Handle) -> str:
    """The callback; of a task, the line at which it goes on."""
    called = handle._callback  # type: ignore[attr-defined] # noqa: SLF001
    coroutine_of = getattr(getattr(called, "__self__", None), "get_coro", None)
    if coroutine_of is None:
        return str(getattr(called, "__qualname__", called))
    awaited, lines = coroutine_of(), []
    while (frame := getattr(awaited, "cr_frame", None)) is not None:
        lines.append(f"{awaited.__qualname__}:{frame.f_lineno}")
        awaited = awaited.cr_await
    return " ".join(line for line in lines[-3:] if not line.startswith("sleep:"))


def main() -> None:
    """Run the benchmark, print it, and exit with 1 if a call is too long."""
    stop_logs, watch, found = configure_logs(stream=io.StringIO()), Watch(), {}
    for name in (*KINDS, *CHANGES):
        with tempfile.TemporaryDirectory() as folder:
            found[name] = seconds, where = asyncio.run(measured(Path(folder), watch, name))
        print(f"{name:<34} {1000 * seconds:>5.0f} ms  {where}")
    stop_logs()
    sys.exit(max(seconds for seconds, _ in found.values()) > MOST_SECONDS)


async def measured(folder: Path, watch: Watch, name: str) -> tuple[float, str]:
    """The longest call of the loop for this kind."""
    gateway = here(folder, f"{CONFIGURATION}---{CHANGING}", worker_of(name))
    address, _ = await gateway.start()
    context = ssl.create_default_context(cafile=folder / "ca.crt")
    load = large_of(name)
    # asyncio's task in Python: that in C does not tell where it goes on.
    in_python = asyncio.tasks._PyTask  # type: ignore[attr-defined] # noqa: SLF001
    asyncio.get_running_loop().set_task_factory(lambda loop, coroutine, **more: in_python(coroutine, loop=loop, **more))
    longest = []
    try:
        for _ in range(REVIEWS):
            watch.reset()
            await asyncio.to_thread(review, address, context, load)
            longest.append((watch.seconds, watch.where))
    finally:
        await gateway.stop(drain=False)
    return min(longest)


def review(address: tuple[str, int], context: ssl.SSLContext, load: Load) -> None:
    """Send it, and read the answer."""
    with socket.create_connection(address, timeout=60) as plain:
        client = context.wrap_socket(plain, server_hostname=address[0])
        client.sendall(request(load, timeout=30))
        with HTTPResponse(client) as response:
            response.begin()
            assert load.expected in response.read()
        client.close()


if __name__ == "__main__":
    main()
