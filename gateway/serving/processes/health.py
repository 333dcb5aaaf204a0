"""The health of several processes as that of one gateway: answers to ``/readyz?verbose`` in, the lines of one out.

    ==============================  ================================================================================
    a process                       the gateway
    ==============================  ================================================================================
    has not been ready since the    is not ready
    gateway started
    is not ready                    is not ready: connections still lead to that process
    does not answer                 is not ready, and not alive
    has ended, and is started       is ready, with a note: connections lead to the others. Without any other, it is not
    again                           ready
    ==============================  ================================================================================

A line that all processes have stands once; another one names its processes.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

_FAILED: Final = "[-]"
_SUMMARY: Final = "readyz check "


class Health(Struct, frozen=True):
    """Whether a gateway is ready, and the lines that say why."""

    is_ready: bool
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """As Kubernetes' components write it."""
        return "".join(f"{line}\n" for line in (*self.lines, f"{_SUMMARY}{'passed' if self.is_ready else 'failed'}"))


def combined(answers: Mapping[int, str], problems: Mapping[int, str], notes: Mapping[int, str]) -> Health:
    """The health of a gateway.

    Args:
        answers: of the processes that answered, by number.
        problems: why other processes make the gateway unready.
        notes: what is known of processes that do not.
    """
    owners: dict[str, list[int]] = {}
    for number, text in answers.items():
        for line in text.splitlines():
            if not line.startswith(_SUMMARY):
                owners.setdefault(line, []).append(number)
    lines = [_processes(problems, notes, serving=len(answers))]
    lines += [line if len(of) == len(answers) else f"{line} ({_named(of)})" for line, of in owners.items()]
    return Health(not any(line.startswith(_FAILED) for line in lines), tuple(lines))


def _processes(problems: Mapping[int, str], notes: Mapping[int, str], *, serving: int) -> str:
    known = "; ".join(f"process {number}: {text}" for number, text in sorted({**problems, **notes}.items()))
    if problems or not serving:
        return f"{_FAILED}processes failed: {known or 'none runs'}"
    return f"[+]processes ok: {known}" if known else "[+]processes ok"


def _named(numbers: list[int]) -> str:
    return f"process{'es' if len(numbers) > 1 else ''} {', '.join(map(str, sorted(numbers)))}"
