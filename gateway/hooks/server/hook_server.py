"""The server of ``hook-worker``: a worker of the Python SDK, whose policies are hooks.

* Files of the directory that were skipped are logged as soon as it listens: before that, the worker contract prescribes
  what is written to standard error.
* It stops when the file of a hook has changed: the descriptions that it gave are outdated.
* It stops on SIGHUP (a closed terminal) as on SIGTERM. The SDK does not handle SIGHUP, which would end the process at
  once, and running hooks would outlive it.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final, Optional

import structlog

from admission_worker import Limits, Worker
from admission_worker.certificates import Tls
from gateway.hooks.execution.description import HookDescription
from gateway.hooks.execution.hook_file import stamp
from gateway.hooks.server.hook_cluster import HookCluster

if TYPE_CHECKING:
    from gateway.telemetry.traces.provider import SpanProvider

_LOG: Final = structlog.get_logger(__name__)

NAME: Final = "hooks"
"""The worker's name, for logs."""

POLL_SECONDS: Final = 1.0
"""How often the stamps of the hooks' files are compared."""


class HookServer(Worker):
    """A worker of the SDK.

    Args:
        version: of all hooks together.
        hooks: by path; it stops when one of them changes.
        warnings: logged when it listens.
        cluster: where its snapshots come from; None: it has none.
        spans: exports the spans of its calls; None: none are made.
        listener: is open while it serves, and while it waits for the snapshots; None: there is none.
    """

    def __init__(
        self,
        *,
        version: str,
        hooks: Mapping[Path, HookDescription],
        warnings: Sequence[str],
        cluster: HookCluster | None = None,
        spans: Optional["SpanProvider"] = None,
        listener: AbstractAsyncContextManager[object] | None = None,
    ) -> None:
        super().__init__(NAME, version=version)
        self._hooks = hooks
        self._warnings = warnings
        self._cluster = cluster
        self._spans = spans
        self._listener = listener or nullcontext()
        self._is_stopping = False

    @asynccontextmanager
    async def serve(
        self,
        address: str = "127.0.0.1:0",
        *,
        limits: Limits | None = None,
        tls: Tls | None = None,
        conformance: bool = False,
    ) -> AsyncIterator[str]:
        """See Worker. It begins to listen when the snapshots of the cluster are complete, or after a few seconds."""
        async with (
            self._listener,
            self._cluster or nullcontext(),
            super().serve(address, limits=limits, tls=tls, conformance=conformance) as found,
        ):
            for warning in self._warnings:
                _LOG.warning(warning)
            if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as after nohup
                asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._stop, "SIGHUP received; stopping")
            if self._spans is not None:
                self._spans.start()
            watching = asyncio.create_task(self._watch())
            try:
                yield found
            finally:
                self._is_stopping = True
                watching.cancel()
                if self._spans is not None:
                    await self._spans.stop()

    async def _watch(self) -> None:
        # Files change without an event that could be waited for.
        while not (changed := await asyncio.to_thread(self._changed)):  # noqa: ASYNC110
            await asyncio.sleep(POLL_SECONDS)
        self._stop(*(f"hook {path} has changed; stopping, to be started again" for path in changed))

    def _changed(self) -> list[Path]:
        return [path for path, hook in self._hooks.items() if stamp(path) != hook.stamp]

    def _stop(self, *reasons: str) -> None:
        """Send SIGTERM to this process, once: at a second one the SDK exits without a grace period, and a closed
        terminal may send several SIGHUPs.
        """
        if not self._is_stopping:
            self._is_stopping = True
            for reason in reasons:
                _LOG.warning(reason)
            os.kill(os.getpid(), signal.SIGTERM)
