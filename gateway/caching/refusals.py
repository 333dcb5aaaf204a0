"""Commands that Redis refuses although it answers: its ACL forbids them, or it cannot do them now (full, a replica).

A refused command does not end the link: other commands may still work. The refusal is reported until a command of that
kind succeeds, and logged once for each command and reason while the link is up. One refused command of a pipeline is
enough: one node of a cluster may be full.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import structlog
from redis import exceptions

from gateway.redis.faults import reason_of
from gateway.redis.pipelines import Command

_LOG: Final = structlog.get_logger(__name__)


class Refusals:
    """The refused kinds of commands of one Redis.

    Args:
        shown: the part of its address that may be logged.
    """

    __slots__ = ("_logged", "_now", "_shown")

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self._now: dict[str, str] = {}
        self._logged: set[tuple[str, type[BaseException]]] = set()

    @property
    def now(self) -> Mapping[str, str]:
        """Each kind of command (SET, GETRANGE, …) whose last use was refused, and why, in the gateway's words."""
        return self._now

    def renew(self) -> None:
        """Log refusals again from now on: the link came up."""
        self._logged.clear()

    def note(self, commands: Sequence[Command], answers: Sequence[Any]) -> None:
        """Record the answers to commands; an exception in the place of an answer is an error of that command."""
        refused: dict[str, exceptions.ResponseError] = {}
        done: set[str] = set()
        for command, answer in zip(commands, answers, strict=True):
            if isinstance(answer, exceptions.ResponseError):
                refused[command[0]] = answer
            elif not isinstance(answer, BaseException):
                done.add(command[0])
        for name in done - refused.keys():
            self._now.pop(name, None)
        for name, error in refused.items():
            self._now[name] = reason_of(error)
            self._log(name, error)

    def _log(self, name: str, error: exceptions.ResponseError) -> None:
        if (name, type(error)) not in self._logged:
            self._logged.add((name, type(error)))
            _LOG.warning("Redis refuses commands", command=name, why=reason_of(error), scheme=self._shown)
