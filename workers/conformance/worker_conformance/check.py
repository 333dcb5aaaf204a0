"""A check: one property of a worker, with a name, a sentence, and the sentence of the contract that it holds to.

A check is a coroutine function of the ``Subject``. It returns, or raises what ``findings`` names. What it needs stands
beside it, so that the runner can say of each skipped check why.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from worker_conformance.subject import Subject

Run = Callable[["Subject"], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence of the contract, word for word, and where it stands."""

    source: str
    text: str


def proto(text: str) -> Quote:
    """A sentence of ``worker.proto``."""
    return Quote("proto/admission/worker/v1/worker.proto", text)


def readme(text: str) -> Quote:
    """A sentence of ``workers/README.md``, which binds the SDKs and whoever calls a worker's command."""
    return Quote("workers/README.md", text)


def grpc_health(text: str) -> Quote:
    """A sentence of gRPC's health checking protocol."""
    return Quote("grpc/health/v1/health.proto", text)


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One check.

    Args:
        name: SECTION.WHAT, in lower case.
        sentence: what it establishes.
        contract: the sentence that it holds the worker to.
        run: the check itself.
        probes: the probe policies that it needs.
        stream: it needs ``ReviewStream``.
        command: it needs the worker's command, for it starts workers of its own.
        alone: it must not run beside others, for it takes all that the worker has.
        seconds: how long it takes with a worker that is all right, beyond the patience, where it has to wait.
    """

    name: str
    sentence: str
    contract: Quote
    run: Run
    probes: tuple[str, ...] = ()
    stream: bool = False
    command: bool = False
    alone: bool = False
    seconds: float = 0.0


class Section:
    """Checks that belong together; a module holds one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.checks: list[Check] = []

    def check(
        self, name: str, sentence: str, contract: Quote, *, probes: str = "", needs: str = "", seconds: float = 0.0
    ) -> Callable[[Run], Run]:
        """Make a function a check of this section.

        Args:
            name: what follows the section's name.
            sentence: as in ``Check``.
            contract: as in ``Check``.
            probes: probe policies, with blanks between them and without ``probe-``.
            needs: of ``stream``, ``command`` and ``alone``, with blanks between them.
            seconds: as in ``Check``.
        """

        def register(run: Run) -> Run:
            wanted = needs.split()
            self.checks.append(
                Check(
                    name=f"{self.name}.{name}",
                    sentence=sentence,
                    contract=contract,
                    run=run,
                    probes=tuple(f"probe-{probe}" for probe in probes.split()),
                    stream="stream" in wanted,
                    command="command" in wanted,
                    alone="alone" in wanted,
                    seconds=seconds,
                )
            )
            return run

        return register
