"""What Redis refuses although it answers: commands that its ACL forbids, or that it cannot do now (full, a replica).

A refused command does not end the link: what Redis still does is worth having. But nobody would see it, so it is noted
until a command of that kind is done again, and said in the log once for each command and reason while the link is up.
Where one command of a pipeline is refused, its kind is: of a cluster, one node may be full.
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
        shown: what may be said of its address.
    """

    __slots__ = ("_now", "_reported", "_shown")

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self._now: dict[str, str] = {}
        self._reported: set[tuple[str, type[BaseException]]] = set()

    @property
    def now(self) -> Mapping[str, str]:
        """Each kind of command (SET, GETRANGE, …) that was refused last, and why, in our own words."""
        return self._now

    def renew(self) -> None:
        """The link came up: what is refused from now on is said again."""
        self._reported.clear()

    def note(self, commands: Sequence[Command], answers: Sequence[Any]) -> None:
        """Commands were answered; an exception in the place of an answer is an error of that command."""
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
            self._report(name, error)

    def _report(self, name: str, error: exceptions.ResponseError) -> None:
        if (name, type(error)) not in self._reported:
            self._reported.add((name, type(error)))
            _LOG.warning("Redis refuses commands", command=name, why=reason_of(error), scheme=self._shown)
