"""How long an applied object takes until all replicas enforce it, with a real kube-apiserver.

Three gateways serve the policies in the cluster: ``--objects`` configurations that judge ConfigMaps, and one that
denies Pods with a message. A round applies another message, or a new Worker and a configuration that names it, and
calls each gateway until it denies with that message. The output has the seconds from before the request that applies to
the last gateway's first denial. Exit code 1: a round took more than two seconds.

It needs a kube-apiserver that was built: ``make bench-cluster`` builds it once.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import Any, Final

import aiohttp

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
REVIEW: Final = "kubectl-run.1v"
REPLICAS: Final = 3
LIMIT: Final = 2.0
POLL_SECONDS: Final = 0.005
GIVE_UP_SECONDS: Final = 90.0

# The harness of the tests, which has no types.
API_SERVER: Any = import_module("tests.e2e.api_server")
CLIENT: Any = import_module("tests.e2e.client")
KINDS: Any = import_module("tests.e2e.kinds")
POLICIES: Any = import_module("tests.e2e.policies")
PROCESS: Any = import_module("tests.integration.process")
SERVERS: Any = import_module("tests.caching.servers")
TRAFFIC: Any = import_module("tests.traffic")
WORKER: Any = import_module("tests.e2e.worker_process")


class Replica:
    """One gateway, called as kube-apiserver calls it."""

    def __init__(self, process: Any, session: aiohttp.ClientSession, body: bytes) -> None:
        self._url = f"https://localhost:{process.port}/validate?timeout=10s"
        self._trust = process.trust
        self._session, self._body = session, body

    async def denies(self, message: str) -> float:
        """When it first denied with this message."""
        headers = {"Content-Type": "application/json"}
        while True:
            async with self._session.post(self._url, data=self._body, headers=headers, ssl=self._trust) as response:
                if response.status == 200:
                    decided = (await response.json())["response"]
                    if not decided["allowed"] and message in decided["status"]["message"]:
                        return monotonic()
            await asyncio.sleep(POLL_SECONDS)


async def measure(arguments: argparse.Namespace, server: Any, stack: ExitStack, folder: Path) -> dict[str, list[float]]:
    """The seconds of all rounds, by what was applied."""
    kubeconfig = server.kubeconfig(folder)
    targets = [f"127.0.0.1:{SERVERS.free_port()}" for _ in range(2)]
    for target in targets:
        worker = WORKER.WorkerProcess(target, str(ROOT / "tests/e2e/configured.py"))
        stack.callback(worker.stop)
        await asyncio.to_thread(worker.ready)
    async with CLIENT.Client(server) as client, aiohttp.ClientSession() as session:
        await KINDS.define(client)
        await apply(client, KINDS.worker({"grpc": {"target": targets[0]}}, name="configured"))
        for index in range(arguments.objects):
            other = POLICIES.denies("no", name=f"other{index}", rules=POLICIES.CONFIG_MAPS)
            await apply(client, KINDS.validating(other, name=f"other{index}"))
        body = TRAFFIC.recording(REVIEW).body
        replicas = []
        for index in range(REPLICAS):
            flags = ("--kubeconfig", kubeconfig, "--cluster-policies", "--tls-dev-dir", folder / f"tls{index}")
            process = PROCESS.Serving(*flags, "--drain", 0)
            stack.callback(process.stop)
            replicas.append(Replica(await asyncio.to_thread(process.ready), session, body))
        changed = await rounds("change", arguments.rounds, replicas, lambda message: change(client, message))
        added = await rounds("addition", arguments.rounds, replicas, lambda message: add(client, message, targets[1]))
    return {"a changed policy": changed, "a new Worker and policy": added}


async def rounds(
    what: str, count: int, replicas: list[Replica], begin: Callable[[str], Awaitable[None]]
) -> list[float]:
    """The seconds of each round. The first one is not counted: it waits until the gateways are ready."""
    seconds = []
    for index in range(count + 1):
        message = f"{what} {index}"
        started = monotonic()
        await begin(message)
        async with asyncio.timeout(GIVE_UP_SECONDS):
            ended = await asyncio.gather(*(replica.denies(message) for replica in replicas))
        seconds.append(max(ended) - started)
    return seconds[1:]


async def change(client: Any, message: str) -> None:
    """Apply another message."""
    await apply(client, KINDS.validating(POLICIES.denies(message), name="measured"))


async def add(client: Any, message: str, target: str) -> None:
    """Apply a Worker that no gateway knows, and a policy of it."""
    name = f"added-{message.split()[1]}"
    await apply(client, KINDS.worker({"grpc": {"target": target}}, name=name))
    await apply(client, KINDS.validating(POLICIES.denies(message, name=name) | {"worker": name}, name=name))


async def apply(client: Any, obj: dict[str, Any]) -> None:
    """Apply an object."""
    reply = await client.apply(obj)
    assert reply.code in {200, 201}, reply


def main() -> None:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10, help="Rounds of each kind.")
    parser.add_argument("--objects", type=int, default=100, help="Other configurations in the cluster.")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = API_SERVER.ApiServer(folder)
        stack.callback(server.stop)
        seconds = asyncio.run(measure(arguments, server.ready(), stack, folder))
    for what, found in seconds.items():
        print(f"{what}: median {statistics.median(found):.2f} s, longest {max(found):.2f} s, {len(found)} rounds")
    if max(map(max, seconds.values())) > LIMIT:
        sys.exit(f"a round took more than {LIMIT:g} s")


if __name__ == "__main__":
    main()
