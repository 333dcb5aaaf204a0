"""A worker whose policies are hooks: what it tells when it serves, and when it stops besides.

* What was left out of the directory is told in its log, once it listens: its standard error has the form that the
  worker's contract asks for.
* When the file of a hook has changed, it stops: what was described holds no longer.
* SIGHUP (a terminal that is closed) tells it to stop, as SIGTERM does. The SDK leaves that signal to the system, which
  would end it at once, and hooks that run would outlive it.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import structlog

from admission_worker import Limits, Worker
from admission_worker.certificates import Tls
from gateway.hooks.execution.description import HookDescription, stamp

_LOG: Final = structlog.get_logger(__name__)

NAME: Final = "hooks"
"""The worker's, for logs."""

LOOK_SECONDS: Final = 1.0
"""How often the hooks' files are looked at."""


class HookWorker(Worker):
    """A worker of the SDK.

    Args:
        version: of all hooks together.
        hooks: by path; it stops when one of them changes.
        remarks: what is told when it listens.
    """

    def __init__(self, *, version: str, hooks: Mapping[Path, HookDescription], remarks: Sequence[str]) -> None:
        super().__init__(NAME, version=version)
        self._hooks = hooks
        self._remarks = remarks
        self._stops = False

    @asynccontextmanager
    async def serve(
        self,
        address: str = "127.0.0.1:0",
        *,
        limits: Limits | None = None,
        tls: Tls | None = None,
        conformance: bool = False,
    ) -> AsyncIterator[str]:
        """See Worker."""
        async with super().serve(address, limits=limits, tls=tls, conformance=conformance) as found:
            for remark in self._remarks:
                _LOG.warning(remark)
            if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as after nohup
                asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._stop, "SIGHUP received; stopping")
            watching = asyncio.create_task(self._watch())
            try:
                yield found
            finally:
                self._stops = True
                watching.cancel()

    async def _watch(self) -> None:
        # What is waited for is outside of this process.
        while not (changed := await asyncio.to_thread(self._changed)):  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)
        self._stop(*(f"a hook has changed: {path}; stopping, to be started again" for path in changed))

    def _changed(self) -> list[Path]:
        return [path for path, hook in self._hooks.items() if stamp(path) != hook.stamp]

    def _stop(self, *reasons: str) -> None:
        """As if by SIGTERM; once, for by a second one the SDK ends at once, and a closed terminal may send more than
        one SIGHUP.
        """
        if not self._stops:
            self._stops = True
            for reason in reasons:
                _LOG.warning(reason)
            os.kill(os.getpid(), signal.SIGTERM)
