"""Workers that the kit starts as the gateway does, with ``ADMISSION_WORKER_LISTEN`` in their environment.

Each has its own process group, which the kit kills at the end. Signals go to the process only, as those of Kubernetes
and the gateway.
"""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from worker_conformance import GRPC_VERBOSITY
from worker_conformance.findings import BrokenRuleError, StartError
from worker_conformance.target import Target, reached

PREFIX = "ADMISSION_WORKER_"

LISTENS = re.compile(
    r"worker (?P<worker>\S+) (?P<version>\S+) listens on (?P<address>\S+); policies: (?P<policies>[^\"]+)"
)
"""``worker NAME VERSION listens on ADDRESS; policies: a, b``."""

TAIL = 20
"""Lines of its log that a report shows when a worker ended."""

START_PATIENCE = 30.0
"""Seconds until a process listens, and for its first answers: an interpreter or a virtual machine on a loaded machine
takes several."""

LAST_LINES = 10.0
"""Seconds to read the rest of the log after a process ended: a loaded machine takes a moment."""


class Process:
    """A started worker.

    Attributes:
        log: the lines of its standard error so far.
        listen: the address in its environment.
    """

    def __init__(self, process: asyncio.subprocess.Process, listen: str, patience: float) -> None:
        self._process = process
        self._patience = patience
        self.listen = listen
        self.log: list[str] = []
        self._more = asyncio.Event()
        self._reading = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        assert self._process.stderr is not None  # noqa: S101 - it is a pipe
        while line := await self._process.stderr.readline():
            self.log.append(line.decode(errors="replace").rstrip("\n"))
            self._more.set()
        self._more.set()

    async def listening(self) -> re.Match[str]:
        """The log line with its address.

        Raises:
            BrokenRuleError: the worker ends without that line, or does not write it in time.
        """
        looked = 0
        try:
            async with asyncio.timeout(self._patience):
                while True:
                    for line in self.log[looked:]:
                        looked += 1
                        if found := LISTENS.search(line):
                            return found
                    if self._reading.done() and looked == len(self.log):
                        raise BrokenRuleError(
                            "a log line with the worker's address", f"the worker ended: {self.tail()}"
                        )
                    self._more.clear()
                    await self._more.wait()
        except TimeoutError:
            observed = f"none within {self._patience:g} s: {self.tail()}"
            raise BrokenRuleError("a line `worker NAME VERSION listens on ADDRESS; policies: ...`", observed) from None

    async def target(self) -> Target:
        """Its address, once it accepts connections.

        Raises:
            StartError: it ends before, or does not listen in time.
        """
        if not self.listen.startswith("unix:"):
            return Target(address=(await self.listening())["address"])
        target = Target(address=self.listen)
        ended = asyncio.ensure_future(self._process.wait())
        ready = asyncio.ensure_future(reached(target, self._patience))
        try:
            await asyncio.wait({ended, ready}, return_when=asyncio.FIRST_COMPLETED)
            if not ready.done():
                raise StartError(f"the worker ended with exit code {ended.result()} before it listened: {self.tail()}")
            ready.result()
        finally:
            ended.cancel()
            ready.cancel()
        return target

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        with suppress(ProcessLookupError):
            self._process.send_signal(number)

    def end_input(self) -> None:
        """Close its standard input, as when the gateway ends."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    async def exit_code(self, patience: float) -> int:
        """Wait until it ends.

        Raises:
            BrokenRuleError: it does not end in time.
        """
        try:
            code = await asyncio.wait_for(asyncio.shield(self._process.wait()), patience)
        except TimeoutError:
            raise BrokenRuleError("the process to end", f"it still runs after {patience:g} s: {self.tail()}") from None
        with suppress(TimeoutError):  # a child process may keep standard error open; the lines so far are enough
            await asyncio.wait_for(asyncio.shield(self._reading), LAST_LINES)
        return code

    def tail(self) -> str:
        """The end of its log."""
        return "\n".join(self.log[-TAIL:]) or "nothing on standard error"

    async def close(self) -> None:
        """Kill its process group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
        self._reading.cancel()


@dataclass(kw_only=True)
class Launcher:
    """Starts workers.

    Args:
        command: the worker's command.
        probes: add ``--conformance``.
        folder: for sockets and certificates, with a short path.
        patience: seconds for one wait, for users of the worker.
        start_patience: seconds until a process listens or reports why it cannot.
        has_stream: whether the worker has ``ReviewStream``; known after the first worker has been called.
    """

    command: Sequence[str]
    probes: bool
    folder: Path
    patience: float
    start_patience: float = START_PATIENCE
    has_stream: bool = True
    _count: int = 0

    def socket(self) -> Path:
        """A new path for a socket."""
        self._count += 1
        return self.folder / f"{self._count}.sock"

    @asynccontextmanager
    async def started(
        self, *flags: str, listen: str = "", environment: Mapping[str, str] | None = None, open_input: bool = False
    ) -> AsyncIterator[Process]:
        """A worker, until the block ends.

        Args:
            *flags: further arguments.
            listen: its address; "": a new Unix socket.
            environment: further variables, without ``ADMISSION_WORKER_``.
            open_input: whether its standard input stays open; otherwise it has ended.

        Raises:
            StartError: the command cannot be run.
        """
        listen = listen or f"unix:{self.socket()}"
        variables = {key: value for key, value in os.environ.items() if not key.startswith(PREFIX)}
        if GRPC_VERBOSITY is None:
            variables.pop("GRPC_VERBOSITY", None)
        own = {"LISTEN": listen} | dict(environment or {})
        variables |= {PREFIX + key: value for key, value in own.items()}
        try:
            process = await asyncio.create_subprocess_exec(
                *self.command,
                *(["--conformance"] if self.probes else []),
                *flags,
                env=variables,
                stdin=asyncio.subprocess.PIPE if open_input else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
                limit=2**24,
            )
        except OSError as error:
            raise StartError(f"{self.command[0]}: cannot be run: {error.strerror}") from None
        started = Process(process, listen, self.start_patience)
        try:
            yield started
        finally:
            await started.close()
