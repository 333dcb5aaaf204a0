"""What a large review costs: CPU of the gateway, its memory at most, and what small reviews beside it notice.

Starts ``admission-gateway serve`` for each kind of object, sends twelve of them at once and, over four connections,
small reviews until all twelve are answered. Repeat it with ``make bench-heavy``.

    CPU       of the gateway for one of the twelve, with the small reviews beside it
    memory    VmHWM after, less VmRSS before: the most that the twelve and their answers took
    beside    small reviews answered meanwhile, and the slowest of them
"""

import asyncio
import json
import re
import ssl
import tempfile
import time
from pathlib import Path

import uvloop
from reviews import CONFIGURATION, RECORDING, WORKER
from served import Load, cpu_seconds, send, start

TWELVE = 12
BESIDE = 4
LARGE = 3_000_000
"""Nearly 3 MiB, the API server's limit for a request."""
READABLE = 280_000
"""Nearly the gateway's limit of values that are parsed."""

DEEP = b"[" * 100 + b"]" * 100
KINDS = {
    "one text of 3 MB": b'"' + b"x" * LARGE + b'"',
    "nested arrays, 3 MB": b"[" + b",".join([DEEP] * (LARGE // len(DEEP))) + b"]",
    "empty arrays, 3 MB": b"[" + b",".join([b"[]"] * (LARGE // 3)) + b"]",
    "nested arrays that are read": b"[" + b",".join([DEEP] * (READABLE // 101)) + b"]",
    "floats that take long to read": b"[" + b",".join([b"1.7976931348623157e+308"] * (READABLE // 9)) + b"]",
    "one text of emoji, 9 MB": b'"' + "😀".encode() * (9_000_000 // 4) + b'"',
    "small members that are read": b"{" + b",".join(b'"k%06d":1' % n for n in range(READABLE // 2)) + b"}",
}


def main() -> None:
    """Run the benchmark and print it."""
    print(f"{'twelve at once':<30} {'bytes':>9} {'CPU each':>9} {'memory':>8} {'beside':>7} {'slowest':>8}")
    for name, spec in KINDS.items():
        with tempfile.TemporaryDirectory() as folder:
            gateway, port, context = start(Path(folder), CONFIGURATION, WORKER)
            try:
                print(f"{name:<30} {uvloop.run(measured(gateway.pid, port, context, spec))}")
            finally:
                gateway.terminate()
                gateway.wait(30)


async def measured(pid: int, port: int, context: ssl.SSLContext, spec: bytes) -> str:
    """One kind: the rest of its row."""
    review = json.loads(json.loads(RECORDING.read_text())["body"])
    review["request"]["operation"] = "DELETE"
    small = Load(name="small", path="/validate", body=json.dumps(review).encode(), expected=b'"allowed":true')
    # As an UPDATE, the policy reads a part of it.
    review["request"]["operation"] = "UPDATE"
    review["request"]["object"]["spec"]["containers"] = "@"
    body = json.dumps(review).encode().replace(b'"@"', spec)
    large = Load(name="large", path="/validate", body=body, expected=b'"allowed":')
    before, cpu = memory(pid, "VmRSS"), cpu_seconds(pid)
    beside: list[float] = []
    ended = asyncio.Event()
    small_ones = [asyncio.create_task(until(ended, port, context, small, beside)) for _ in range(BESIDE)]
    await asyncio.gather(*(once(port, context, large, []) for _ in range(TWELVE)))
    ended.set()
    await asyncio.gather(*small_ones)
    each = 1000 * (cpu_seconds(pid) - cpu) / TWELVE
    most = (memory(pid, "VmHWM") - before) / 1_000_000
    return f"{len(body):>9} {each:>6.0f} ms {most:>5.0f} MB {len(beside):>7} {1000 * max(beside):>5.0f} ms"


async def once(port: int, context: ssl.SSLContext, load: Load, latencies: list[float]) -> None:
    """One request on a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    await send(reader, writer, message(load), load.expected, time.monotonic() + 0.001, latencies)
    writer.close()


async def until(ended: asyncio.Event, port: int, context: ssl.SSLContext, load: Load, latencies: list[float]) -> None:
    """One request after another on one connection, until the event is set."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    while not ended.is_set():
        await send(reader, writer, message(load), load.expected, time.monotonic() + 0.001, latencies)
    writer.close()


def message(load: Load) -> bytes:
    """The request as it is sent."""
    head = f"POST {load.path}?timeout=30s HTTP/1.1\r\nHost: gateway.svc:443\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(load.body)}\r\n\r\n".encode() + load.body


def memory(pid: int, name: str) -> int:
    """Bytes of a process in memory."""
    found = re.search(rf"^{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


if __name__ == "__main__":
    main()
