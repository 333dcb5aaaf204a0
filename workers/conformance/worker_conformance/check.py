"""A check: one property of a worker, with a name, a sentence, and the sentence of the contract that requires it.

A check is a coroutine function of the ``Subject``. It returns, or raises an error of ``findings``. It declares what it
needs, so that the runner can report why it is skipped.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from worker_conformance.subject import Subject

Run = Callable[["Subject"], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence of the contract, word for word, and its file."""

    source: str
    text: str


def proto(text: str) -> Quote:
    """A sentence of ``worker.proto``."""
    return Quote("proto/admission/worker/v1/worker.proto", text)


def readme(text: str) -> Quote:
    """A sentence of ``workers/README.md``, the contract of the SDKs and of a worker's command."""
    return Quote("workers/README.md", text)


def grpc_health(text: str) -> Quote:
    """A sentence of gRPC's health checking protocol."""
    return Quote("grpc/health/v1/health.proto", text)


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One check.

    Args:
        name: SECTION.WHAT, in lower case.
        sentence: the property.
        contract: the sentence that requires it.
        run: the check itself.
        probes: the probe policies that it needs.
        stream: it needs ``ReviewStream``.
        command: it needs the worker's command, because it starts its own workers.
        alone: it must not run beside others, because it uses all of the worker's capacity.
        seconds: how long it waits with a correct worker, in addition to the patience.
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
    """Related checks; each module has one section."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.checks: list[Check] = []

    def check(
        self, name: str, sentence: str, contract: Quote, *, probes: str = "", needs: str = "", seconds: float = 0.0
    ) -> Callable[[Run], Run]:
        """Register a function as a check of this section.

        Args:
            name: the part after the section's name.
            sentence: as in ``Check``.
            contract: as in ``Check``.
            probes: probe policies without ``probe-``, separated by spaces.
            needs: any of ``stream``, ``command`` and ``alone``, separated by spaces.
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
