"""What a large review, or a large change, costs: CPU of the gateway, its memory at most, and what small reviews notice.

Starts ``admission-gateway serve`` for each kind of object. Over four connections it sends small reviews all the time:
beside five large reviews, one after the other, and then beside twelve at once. Repeat it with ``make bench-heavy``.

    CPU       of the gateway for one of the twelve, with the small reviews beside it
    memory    VmHWM after, less VmRSS before: the most that the twelve and their answers took
    one       the slowest small review beside one large one: no call of the event loop took longer
    judged    how many of the twelve; the others were more than one namespace's share of the memory, and got 429
    twelve    small reviews beside the twelve, and the slowest of them
"""

import asyncio
import json
import re
import ssl
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import uvloop
from reviews import CONFIGURATION, RECORDING, WORKER
from served import Load, cpu_seconds, request, send, start

TWELVE = 12
ONE_BY_ONE = 5
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

CHANGES = {
    "a change of 9.9 MB": "'x' * 9_900_000",
    "a change with 4.9 million quotes": "chr(34) * 4_900_000",
    "a change of control characters": "chr(1) * 1_650_000",
    "a change of commas": "',' * 9_900_000",
    "a change of brackets": "'[' * 9_900_000",
    "a change of quotes and brackets": "{'text': (chr(34) + '[') * 3_300_000}",
    "a change of 99,000 objects": "[{}] * 99_000",
    "a change of 190,000 numbers": "[1] * 190_000",
}
"""What a policy adds to an object; as JSON just below the limit for changes."""

CHANGING = """
apiVersion: admission-gateway.dev/v1alpha1
kind: MutatingPolicyConfiguration
metadata: {name: heavy}
policies:
- name: change.bench.example.com
  worker: bench
  sideEffects: None
  rules: [{operations: [UPDATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
"""

CHANGE = """
@worker.mutating("change")
def change(request):
    return patch([{"op": "add", "path": "/spec/large", "value": VALUE}])
"""


def main() -> None:
    """Run the benchmark and print it."""
    print(f"{'':<34} {'bytes':>9} {'CPU each':>9} {'memory':>8} {'one':>7} {'judged':>7} {'twelve':>15}")
    for name in (*KINDS, *CHANGES):
        with tempfile.TemporaryDirectory() as folder:
            gateway, port, context = start(Path(folder), f"{CONFIGURATION}---{CHANGING}", worker_of(name))
            try:
                print(f"{name:<34} {uvloop.run(measured(gateway.pid, port, context, name))}")
            finally:
                gateway.terminate()
                gateway.wait(30)


def worker_of(name: str) -> str:
    """The text of the worker, which makes the change of this kind."""
    change = CHANGE.replace("VALUE", CHANGES.get(name, "None"))
    return WORKER.replace("worker.main()", f"{change}worker.main()")


def large_of(name: str) -> Load:
    """The request of this kind: a large object that a policy reads in part, or a small one that a policy changes."""
    if name in KINDS:
        return updating("/validate", KINDS[name], b'"allowed":')
    return updating("/mutate", b"[]", b'"patchType":')


def updating(path: str, containers: bytes, expected: bytes) -> Load:
    """The request to update a pod with these containers; of an UPDATE, the policy reads a part."""
    review = json.loads(json.loads(RECORDING.read_text())["body"])
    review["request"]["operation"] = "UPDATE"
    review["request"]["object"]["spec"]["containers"] = "@"
    body = json.dumps(review).encode().replace(b'"@"', containers)
    return Load(name="large", path=path, body=body, expected=expected)


async def measured(pid: int, port: int, context: ssl.SSLContext, name: str) -> str:
    """One kind: the rest of its row."""
    review = json.loads(json.loads(RECORDING.read_text())["body"])
    review["request"]["operation"] = "DELETE"
    small = Load(name="small", path="/validate", body=json.dumps(review).encode(), expected=b'"allowed":true')
    large = large_of(name)
    before = memory(pid, "VmRSS")
    one: list[float] = []
    async with beside(port, context, small, one):
        for _ in range(ONE_BY_ONE):
            assert await once(port, context, large)
    cpu, twelve = cpu_seconds(pid), list[float]()
    async with beside(port, context, small, twelve):
        judged = await asyncio.gather(*(once(port, context, large) for _ in range(TWELVE)))
    each = 1000 * (cpu_seconds(pid) - cpu) / TWELVE
    most = (memory(pid, "VmHWM") - before) / 1_000_000
    slowest = f"{1000 * max(one):>4.0f} ms {sum(judged):>7} {len(twelve):>7} {1000 * max(twelve):>4.0f} ms"
    return f"{len(large.body):>9} {each:>6.0f} ms {most:>5.0f} MB {slowest}"


@asynccontextmanager
async def beside(port: int, context: ssl.SSLContext, load: Load, latencies: list[float]) -> AsyncIterator[None]:
    """Meanwhile send small reviews."""
    ended = asyncio.Event()
    tasks = [asyncio.create_task(until(ended, port, context, load, latencies)) for _ in range(BESIDE)]
    yield
    ended.set()
    await asyncio.gather(*tasks)


async def once(port: int, context: ssl.SSLContext, load: Load) -> bool:
    """One request on a connection of its own; whether it was judged: more than its share of the memory gets 429."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    writer.write(request(load, timeout=30))
    status = (await reader.readline()).split()[1]
    assert status in {b"200", b"429"}, status
    while await reader.readline() != b"\r\n":
        pass
    writer.close()
    return status == b"200"


async def until(ended: asyncio.Event, port: int, context: ssl.SSLContext, load: Load, latencies: list[float]) -> None:
    """One request after another on one connection, until the event is set."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    while not ended.is_set():
        await send(reader, writer, request(load, timeout=30), load.expected, time.monotonic() + 0.001, latencies)
    writer.close()


def memory(pid: int, name: str) -> int:
    """Bytes of a process in memory."""
    found = re.search(rf"^{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


if __name__ == "__main__":
    main()
