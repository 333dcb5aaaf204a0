"""A gateway of several processes: the parent, which accepts connections and keeps the processes running.

Each process is a whole gateway, on one core, and to everything outside a replica of its own: it has its caches, its
connections to workers and Redis, its watches and its Lease. They share the two addresses and the memory budget.

    the parent    binds both addresses; passes each connection for reviews to a process (``dispatcher``); asks the
                  processes for the pages of the admin listener (``pages``); passes signals on. It judges nothing, and
                  has no key: TLS ends in the processes
    a process     is launched by exec (``member``), serves what it is passed (``channel``), and drains by itself

Start: the first process starts alone. What prevents its start is reported once, by itself, and ends the gateway with
its exit code; what it makes for others (development certificates) is there when they start. A process that ends is
launched again: at once, then after pauses that double while it does not stay up. Meanwhile the others get its
connections.

Stop: all processes drain, each for itself; connections are accepted until none of them takes any. A parent that is
killed closes the channels: its processes answer the reviews in flight, and exit.
"""

import asyncio
import signal
from collections.abc import Iterator
from typing import Final

import structlog

from gateway.serving.access import AdminAccess
from gateway.serving.credential_files import ADMIN_TOKENS, CredentialFile, CredentialFiles
from gateway.serving.processes.admin import PodAdminListener
from gateway.serving.processes.dispatcher import Dispatcher
from gateway.serving.processes.member import Member
from gateway.serving.processes.metrics import REFRESH_SECONDS, PodMetrics
from gateway.serving.processes.pages import Pages, Processes
from gateway.serving.settings import Address, Settings
from gateway.telemetry.table import PROCESS_RESTARTS

_LOG: Final = structlog.get_logger(__name__)

PAUSE_SECONDS: Final = (0.1, 10.0)
"""The first and the longest pause before a process is launched; none the first time."""

STABLE_SECONDS: Final = 30.0
"""A process that has run for so long is launched again at once."""

_QUIET: Final = {-signal.SIGTERM, -signal.SIGINT}
"""The ends of a process that is stopped before it serves."""


class StartError(Exception):
    """The first process did not start, and has reported why. ``code``: its exit code, or a signal's negative number."""

    def __init__(self, code: int) -> None:
        super().__init__(f"the first process ended with {code}")
        self.code = code


class Pod:
    """The processes of one gateway. Create it in a running loop.

    Args:
        settings: of the gateway.
        number: how many processes.

    Raises:
        CredentialError: the file with the admin listener's tokens cannot be used.
    """

    def __init__(self, settings: Settings, number: int) -> None:
        self._settings = settings
        self._numbers = range(1, number + 1)
        self._members: dict[int, Member] = {}
        self._were_ready: set[int] = set()
        self._ends: dict[int, str] = {}
        self._failed = False
        self._stopping = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._metrics = PodMetrics()
        self._dispatcher = Dispatcher(*settings.listen, settings.limits.backlog)
        tokens = settings.admin_token_file
        file = None if tokens is None else CredentialFile(tokens, ADMIN_TOKENS)
        self._files = CredentialFiles([] if file is None else [file], self._metrics.own)
        pages = Pages(
            self._state,
            self._metrics,
            has_redis=bool(settings.redis),
            heartbeat_seconds=settings.limits.heartbeat_seconds,
        )
        self._admin = PodAdminListener(pages, AdminAccess(file), settings.limits, self._metrics.own)

    async def start(self) -> tuple[Address, Address]:
        """Start everything.

        Returns:
            Host and port for reviews, and of the admin listener.

        Raises:
            ListenError: an address cannot be used.
            StartError: the first process did not start, or is stopped meanwhile.
        """
        admin = await self._admin.start(*self._settings.admin_listen)
        try:
            await self._start_first()
            listen = await self._dispatcher.open()
        except BaseException:
            await self._abort()
            raise
        for number in self._numbers[1:]:
            self._launch(number)
        await asyncio.gather(*(member.ready.wait() for member in self._members.values()))
        self._tasks = [asyncio.create_task(self._keep(number)) for number in self._numbers]
        self._background = [
            asyncio.create_task(self._refresh()),
            asyncio.create_task(self._files.watch(self._settings.reload_interval_seconds)),
        ]
        return listen, admin

    async def _start_first(self) -> None:
        first = self._launch(1, speaks=True)
        await first.ready.wait()
        if not first.is_ready:
            raise StartError(await first.end())

    async def _abort(self) -> None:
        for member in self._members.values():
            member.signal(signal.SIGTERM)
            await member.end()
        self._dispatcher.close()
        await self._admin.stop()

    def signal(self, number: int) -> None:
        """Pass a signal on. SIGTERM and SIGINT stop the gateway."""
        if number == signal.SIGHUP:
            self._files.look()
        else:
            self._stopping.set()
        for member in self._members.values():
            member.signal(number)

    @property
    def is_stopping(self) -> bool:
        """Whether a signal stops it."""
        return self._stopping.is_set()

    async def wait(self) -> bool:
        """Wait until the gateway has stopped, and release everything; whether all processes stopped as they should."""
        await asyncio.gather(*self._tasks)
        self._dispatcher.close()
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self._admin.stop()
        return not self._failed

    # ------------------------------------------------------------------------------------------------ one process

    def _launch(self, number: int, *, speaks: bool = False) -> Member:
        member = Member(number, speaks=speaks, changed=self._changed)
        self._members[number] = member
        self._dispatcher.add(member)
        return member

    async def _keep(self, number: int) -> None:
        """Keep one process running until the gateway stops."""
        loop = asyncio.get_running_loop()
        pause = 0.0
        started = loop.time()
        while True:
            await self._ended(number)
            if self._stopping.is_set():
                return
            pause = 0.0 if loop.time() - started > STABLE_SECONDS else pause
            await self._wait(pause)
            pause = min(max(2 * pause, PAUSE_SECONDS[0]), PAUSE_SECONDS[1])
            if self._stopping.is_set():
                return
            self._metrics.own.count(PROCESS_RESTARTS)
            started = loop.time()
            try:
                self._launch(number)
            except OSError as error:
                _LOG.error("a process cannot be started", process=number, why=error.strerror)

    async def _ended(self, number: int) -> None:
        """Wait until a process has ended, if it runs, and let others have its connections."""
        member = self._members.get(number)
        if member is None:
            return
        code = await member.end()
        del self._members[number]
        self._dispatcher.remove(member)
        self._metrics.ended(member)
        self._ends[number] = how = _how(code)
        if not self._stopping.is_set():
            _LOG.error("a process has ended and is started again", process=number, pid=member.pid, how=how)
        elif code != 0 and (member.is_ready or code not in _QUIET):
            self._failed = True
            _LOG.error("a process did not stop as it should", process=number, pid=member.pid, how=how)
        self._changed()

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            await self._metrics.refresh(self._serving())

    # ------------------------------------------------------------------------------------------------ their state

    def _changed(self) -> None:
        for number, member in self._members.items():
            if member.is_ready:
                self._were_ready.add(number)
        if self._stopping.is_set() and all(member.is_closed for member in self._members.values()):
            self._dispatcher.close()
        else:
            self._dispatcher.changed()

    def _serving(self) -> list[Member]:
        members = (self._members.get(number) for number in self._numbers)
        return [member for member in members if member is not None and member.is_ready and not member.has_ended]

    def _state(self) -> Processes:
        serving = self._serving()
        away = dict(self._away({member.number for member in serving}))
        starting = {number: why for number, why in away.items() if number not in self._were_ready}
        notes = {number: why for number, why in away.items() if number in self._were_ready}
        return Processes(serving=serving, problems=starting, notes=notes)

    def _away(self, serving: set[int]) -> Iterator[tuple[int, str]]:
        for number in self._numbers:
            if number in serving:
                continue
            end = f", after it ended {self._ends[number]}" if number in self._ends else ""
            yield number, f"{'starts' if number in self._members else 'is to be started'}{end}"


def _how(code: int) -> str:
    """How a process has ended, from its return code."""
    if code >= 0:
        return f"with exit code {code}"
    try:
        return f"by {signal.Signals(-code).name}"
    except ValueError:
        return f"by signal {-code}"
