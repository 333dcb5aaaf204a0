"""Starts services as processes, starts them again when they end, and ends them."""

import asyncio
import contextlib
import itertools
import os
import shutil
import signal
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from deploy.demo.machine import PROGRAMS, Machine
from deploy.demo.services import Service

_READY_SECONDS = 120
"""A Java virtual machine on a loaded machine takes several seconds."""

_STOP_SECONDS = 15
"""Above the grace periods of workers (8 s)."""


class NotAliveError(Exception):
    """A service does not do what it should. The message: which, what, and where its log is."""


class Processes:
    """``async with Processes(services, folder) as running``: they listen, and are ended at the end.

    ``pids`` are those of the running services, by name; ``skipped`` those that need a container engine.
    """

    def __init__(self, services: Sequence[Service], folder: Path) -> None:
        self.services = [each for each in services if each.image in PROGRAMS]
        self.skipped = [each.name for each in services if each.image not in PROGRAMS]
        self.machine = Machine(services, folder)
        self._running: dict[str, Process] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        try:
            await self._start_all()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.stop()

    @property
    def pids(self) -> dict[str, int]:
        """See above."""
        return {name: process.pid for name, process in self._running.items()}

    def log(self, name: str) -> Path:
        """The file with the output of a service."""
        return self.machine.folder / f"{name}.log"

    async def _start_all(self) -> None:
        programs = {service.name: self.machine.argv(service)[0] for service in self.services}
        for name, program in programs.items():
            if shutil.which(program) is None:
                raise NotAliveError(f"{name}: {program} does not exist here: build or install it (make demo-processes)")
        for service in self.services:
            self.machine.mount(service)
            if service.runs_once:
                process = await self._start(service)
                if await process.wait():
                    raise NotAliveError(f"{service.name} failed:\n{self.log(service.name).read_text()}")
            else:
                self._tasks.append(asyncio.create_task(self._keep(service)))
        ports = [(service, port) for service in self.services if not service.runs_once for port in service.ports]
        await asyncio.gather(*(self._listening(service, port) for service, port in ports))

    async def _start(self, service: Service) -> Process:
        # In a session of its own: Ctrl-C reaches us alone, and we end it.
        with self.log(service.name).open("ab") as log:
            return await asyncio.create_subprocess_exec(
                *self.machine.argv(service),
                stdin=DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.machine.root(service),
                env={**os.environ, **self.machine.environment(service)},
                start_new_session=True,
            )

    async def _keep(self, service: Service) -> None:
        """Start it, and again whenever it ends: ``restart: unless-stopped``, with Docker's doubling delays."""
        for delay in itertools.chain((1, 2, 4, 8), itertools.repeat(16)):
            self._running[service.name] = process = await self._start(service)
            code = await process.wait()
            print(f"{service.name} ended with {code}, and is started again in {delay} s", file=sys.stderr, flush=True)
            await asyncio.sleep(delay)

    async def _listening(self, service: Service, port: int) -> None:
        """Wait until it listens."""
        address = self.machine.addresses[service.name]
        try:
            async with asyncio.timeout(_READY_SECONDS):
                while not await _accepts(address, port):
                    await asyncio.sleep(0.1)
        except TimeoutError:
            log = self.log(service.name)
            raise NotAliveError(
                f"{service.name}: {address}:{port} is not open after {_READY_SECONDS} s; see {log}"
            ) from None

    async def stop(self) -> None:
        """End them all: SIGTERM, then SIGKILL."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for number in (signal.SIGTERM, signal.SIGKILL):
            left = [process for process in self._running.values() if process.returncode is None]
            for process in left:
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(number)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_STOP_SECONDS):
                    await asyncio.gather(*(process.wait() for process in left))


async def _accepts(address: str, port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(address, port)
    except OSError:
        return False
    writer.close()
    return True
