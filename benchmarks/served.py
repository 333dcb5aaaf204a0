"""A gateway that serves, in a process of its own, and the load that is put on it: what the benchmarks have in common.

CPU time is user and system, all threads, read from the kernel: at a hundredth of a second it needs windows of a second
or more. The load generator takes some of the same cores, which CPU time does not see, and latency does.
"""

import asyncio
import json
import os
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.policies.configuration import load as load_policies
from gateway.serving.app import Gateway, WatchedSource
from gateway.serving.settings import Settings
from gateway.sources.watching import Source

ROOT = Path(__file__).resolve().parents[1]
CONNECTIONS = 32
TICKS = os.sysconf("SC_CLK_TCK")
CORES = sorted(os.sched_getaffinity(0))


@dataclass(frozen=True, kw_only=True)
class Load:
    """One kind of request, and what its answer must hold."""

    name: str
    path: str
    body: bytes
    expected: bytes


@dataclass(frozen=True, kw_only=True)
class Window:
    """What was measured in one window: counts, seconds of CPU, seconds of latency."""

    reviews: int
    gateway_cpu: float
    worker_cpu: float
    wall: float
    latencies: list[float]


def start(
    folder: Path, configuration: str, worker: str, *flags: str, environment: Mapping[str, str] | None = None
) -> tuple["subprocess.Popen[bytes]", int, ssl.SSLContext]:
    """A gateway that serves, where it listens, and how to trust it.

    ``configuration`` is YAML; ``worker`` is the text of ``bench_worker.py``, which it may name. ``environment``: more
    variables.
    """
    (folder / "policies.yaml").write_text(configuration)
    (folder / "bench_worker.py").write_text(worker)
    port, admin = free_port(), free_port()
    gateway = subprocess.Popen(
        [
            Path(sys.executable).parent / "admission-gateway",
            *("serve", "--policies", folder / "policies.yaml", "--tls-dev-dir", folder / "tls"),
            *("--listen", f"127.0.0.1:{port}", "--admin-listen", f"127.0.0.1:{admin}", "--log-level", "error"),
            *("--worker-startup-timeout", "20", *flags),
        ],
        stdout=subprocess.PIPE,
        cwd=folder,
        env={**os.environ, **(environment or {})},
    )
    assert gateway.stdout is not None
    while not (line := gateway.stdout.readline()).startswith(b"serving"):
        assert line, "the gateway ended before it served"
    return gateway, port, ssl.create_default_context(cafile=str(folder / "tls" / "ca.crt"))


def here(folder: Path, configuration: str, worker: str, **settings: Any) -> Gateway:
    """A gateway in this process, not started yet; its worker is a process of its own. Arguments: see ``start``.

    ``Gateway.reload`` reads ``policies.yaml`` again.
    """
    text = configuration.replace("bench.sock", f"{folder}/bench.sock").replace(
        "[python, bench_worker.py]", f"[{sys.executable}, {folder}/bench_worker.py]"
    )
    (folder / "policies.yaml").write_text(text)
    (folder / "bench_worker.py").write_text(worker)
    anywhere, source = ("127.0.0.1", 0), Source((folder / "policies.yaml",))
    texts = source.read()
    loaded = load_policies(texts)
    assert not loaded.errors, loaded.errors[0]
    return Gateway(
        loaded,
        Settings(
            listen=anywhere,
            admin_listen=anywhere,
            tls_dev_dir=folder,
            worker_startup_timeout=20,
            reload_interval_seconds=0,
            **settings,
        ),
        watched=WatchedSource(source=source, texts=texts),
    )


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def encoded(review: object) -> bytes:
    """As kube-apiserver writes it: no blanks, a newline at the end."""
    return json.dumps(review, separators=(",", ":")).encode() + b"\n"


def request(load: Load, *, timeout: int = 10) -> bytes:
    """As kube-apiserver sends it, head and body; ``timeout`` in seconds."""
    head = (
        f"POST {load.path}?timeout={timeout}s HTTP/1.1\r\nHost: gateway.svc:443\r\n"
        "User-Agent: kube-apiserver-admission\r\n"
        f"Content-Length: {len(load.body)}\r\nAccept: application/json, */*\r\nContent-Type: application/json\r\n"
        "Accept-Encoding: gzip\r\n\r\n"
    )
    return head.encode() + load.body


async def one_window(  # noqa: PLR0913 - what is measured, where, and how
    pid: int,
    worker: int,
    port: int,
    context: ssl.SSLContext,
    load: Load,
    seconds: float,
    *,
    connections: int = CONNECTIONS,
) -> Window:
    """Send one kind of request over all connections for some seconds."""
    latencies: list[float] = []
    pairs = [await asyncio.open_connection("127.0.0.1", port, ssl=context) for _ in range(connections)]
    message = request(load)
    cpu, worker_cpu, began = cpu_seconds(pid), cpu_seconds(worker), time.monotonic()
    await asyncio.gather(*(send(*pair, message, load.expected, began + seconds, latencies) for pair in pairs))
    wall = time.monotonic() - began
    window = Window(
        reviews=len(latencies),
        gateway_cpu=cpu_seconds(pid) - cpu,
        worker_cpu=cpu_seconds(worker) - worker_cpu,
        wall=wall,
        latencies=latencies,
    )
    for _, writer in pairs:
        writer.close()
    return window


async def send(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    message: bytes,
    expected: bytes,
    until: float,
    latencies: list[float],
) -> None:
    """One request after another on one connection; every answer is checked."""
    while (began := time.monotonic()) < until:
        writer.write(message)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        answer = await reader.readexactly(length)
        assert b" 200 " in head[:20], head
        assert expected in answer, answer
        latencies.append(time.monotonic() - began)


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, all threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def pin(pid: int, index: int) -> None:
    """Let all threads of a process run on one core only, counted in those that this process may use at the start."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), {CORES[index]})
