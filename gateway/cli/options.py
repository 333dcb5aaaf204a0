"""Option types that all commands share: each flag is also an environment variable."""

import math
import re
from collections.abc import Callable, Container, Mapping
from typing import Any, Final, TypeVar

import click

from gateway.bounds import LARGEST_BODIES, MAX_PORT, MEMORY_BUDGET, Bounds, Limit, check_budget
from gateway.caching.limits import CacheLimits
from gateway.patching.limits import PatchLimits
from gateway.serving.limits import Limits
from gateway.transports.limits import TransportLimits

PREFIX: Final = "ADMISSION_GATEWAY_"
_PREFIXES: Final = {
    Limits: "limit_",
    TransportLimits: "limit_",
    PatchLimits: "limit_patch_",
    CacheLimits: "limit_cache_",
}
"""The prefix of the flags of each kind of limits: ``--limit-body-bytes``, ``--limit-cache-memory-bytes``."""

_OF_REDIS: Final = ("queue_", "redis_")
"""The prefix of the limits that only apply with Redis."""

_BUDGET_HELP: Final = "The sizes of caches, bodies in flight and queues follow from it."

_BYTES: Final = re.compile(r"([0-9]{1,18})([kMGT]|[KMGT]i)?")
_UNITS: Final = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}


IN_CLUSTER: Final = "With the Kubernetes API (pip install 'admission-gateway[cluster]')"
"""A section of the help."""

WITH_REDIS: Final = "With Redis, for shared verdicts and for queues (pip install 'admission-gateway[redis]')"
"""A section of the help."""

LIMITS: Final = "Limits (the arithmetic of each: docs/reference/limits.md)"
"""A section of the help."""

SHELL_OPERATOR: Final = "As in shell-operator, for existing hooks"
"""A section of the help."""

_F = TypeVar("_F", bound=Callable[..., Any])


class SectionedOption(click.Option):
    """An option in a section of the help, or in the main list without one."""

    def __init__(self, *arguments: Any, section: str = "", **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.section = section


class SectionedCommand(click.Command):
    """A command whose help lists options by section, the main list first."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write them."""
        sections: dict[str, list[tuple[str, str]]] = {"": []}
        for each in self.get_params(ctx):
            record = each.get_help_record(ctx)
            if record is not None:
                sections.setdefault(getattr(each, "section", ""), []).append(record)
        for name, records in sections.items():
            with formatter.section(name or "Options"):
                formatter.write_dl(records)


def option(flag: str, **attributes: Any) -> Callable[[_F], _F]:
    """A click option that can also be set by ``ADMISSION_GATEWAY_FLAG``, as its help shows. ``section``: of the help of
    a SectionedCommand.
    """
    variable = PREFIX + flag.removeprefix("--").upper().replace("-", "_")
    defaults: dict[str, Any] = {"cls": SectionedOption, "show_default": True}
    return click.option(flag, envvar=variable, show_envvar=True, **(defaults | attributes))


def limit_options(*owners: type[Bounds], names: Container[str] | None = None) -> Callable[[_F], _F]:
    """The flags of limits: ``--memory-budget``, ``--limit-body-bytes``, and the other tunable limits.

    The meaning and reason of each: docs/reference/limits.md.

    Args:
        owners: classes of limits.
        names: the fields that are flags of this command; None: all.
    """

    def decorate(command: _F) -> _F:
        kinds: tuple[type[Bounds], ...] = (Limits, *(owner for owner in owners if owner is not Limits))
        chosen: dict[tuple[type[Bounds], str], Limit] = {
            (owner, name): limit
            for owner in kinds
            for name, limit in owner.limits.items()
            if limit.help and (name == "body_bytes" or (owner in owners and _is_in(name, names)))
        }
        for (owner, name), limit in reversed(chosen.items()):
            flag = f"--{_PREFIXES[owner]}{name}".replace("_", "-")
            divisor = limit.budget_divisor
            text = limit.help + (f" Default: 1/{divisor} of --memory-budget." if divisor else "")
            default = None if divisor else limit.default
            section = WITH_REDIS if name.startswith(_OF_REDIS) else LIMITS
            kind = _limit_type(name, limit.default)
            command = option(flag, type=kind, default=default, help=text, section=section)(command)
        if any(limit.budget_divisor for limit in chosen.values()):
            command = option("--memory-budget", type=BYTES, default=MEMORY_BUDGET, help=_BUDGET_HELP, section=LIMITS)(
                command
            )
        return command

    return decorate


def _is_in(name: str, names: Container[str] | None) -> bool:
    return names is None or name in names


def _limit_type(name: str, default: Any) -> "click.ParamType[Any]":
    if "bytes" in name:
        return BYTES
    return click.INT if isinstance(default, int) else click.FLOAT


def output_option(*formats: str, help: str) -> Callable[[_F], _F]:  # noqa: A002 - click's name
    """``-o``: one of these formats, the first by default. It has no environment variable, as formats differ."""
    return click.option("-o", "--output", type=click.Choice(formats), default=formats[0], show_default=True, help=help)


def chosen_limits(values: dict[str, Any], *owners: type[Bounds]) -> tuple[Any, ...]:
    """Remove the limits from a command's parameters and return an instance of each of ``owners``.

    Raises:
        click.BadParameter: a limit is out of range, with the reason.
    """
    body_bytes = values["limit_body_bytes"]
    # A command without the flag holds one review at a time, or as much as its own flags set.
    budget = values.pop("memory_budget", max(MEMORY_BUDGET, LARGEST_BODIES * body_bytes))
    processes = values.get("processes", 1)
    try:
        check_budget(budget // processes, body_bytes, processes)
        return tuple(_made(owner, values, budget, body_bytes, processes) for owner in owners)
    except ValueError as error:
        raise click.BadParameter(f"{error}; see docs/reference/limits.md") from None
    finally:
        for name in [name for name in values if name.startswith("limit_")]:
            del values[name]


def _made(owner: type[Bounds], values: Mapping[str, Any], budget: int, body_bytes: int, processes: int) -> Any:
    made: dict[str, Any] = {}
    for name, limit in owner.limits.items():
        given = values.get(_PREFIXES[owner] + name)
        if limit.budget_divisor:
            # Of all processes, as the container's memory limit is.
            made[name] = (budget // limit.budget_divisor if given is None else given) // processes
        elif given is not None:
            made[name] = given
        elif limit.body_tenths:
            made[name] = body_bytes * limit.body_tenths // 10 + limit.body_extra
    return owner(**made)


class AddressType(click.ParamType[tuple[str, int]]):
    """``HOST:PORT``, ``[IPv6]:PORT`` or ``:PORT`` (all interfaces); port 0 takes a free one. Becomes (host, port)."""

    name = "HOST:PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        """The address, or click's error with the reason."""
        if isinstance(value, tuple):
            return value
        host, colon, port = value.rpartition(":")
        bracketed = host.startswith("[") and host.endswith("]")
        if not colon or not port.isascii() or not port.isdigit() or int(port) > MAX_PORT:
            self.fail(f"{value!r} is not HOST:PORT with a port from 0 to {MAX_PORT}", param, ctx)
        if ":" in host and not bracketed:
            self.fail(f"{value!r}: an IPv6 address must be in brackets, as in [::1]:8443", param, ctx)
        return (host[1:-1] if bracketed else host) or "0.0.0.0", int(port)  # noqa: S104 - ":PORT" means all interfaces


class SecondsType(click.FloatRange):
    """Seconds, from 0: each number that a timer accepts."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, or click's error with the reason."""
        seconds = float(super().convert(value, param, ctx))
        if not math.isfinite(seconds):
            self.fail(f"{value!r} is not a finite number of seconds", param, ctx)
        return seconds


class ShareType(click.FloatRange):
    """A ratio from 0, none, to 1, all."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, or click's error with the reason."""
        share = float(super().convert(value, param, ctx))
        if math.isnan(share):
            self.fail(f"{value!r} is not a number from 0 to 1", param, ctx)
        return share


class BytesType(click.ParamType[int]):
    """A number of bytes, as Kubernetes writes quantities: ``512Mi``, ``1Gi``, ``20M``, ``20000000``."""

    name = "BYTES"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number of bytes, or click's error with the reason."""
        if isinstance(value, int):
            return value
        found = _BYTES.fullmatch(value)
        if found is None:
            self.fail(f"{value!r} is not a number of bytes such as 512Mi, 1Gi, 20M or 20000000", param, ctx)
        return int(found[1]) * _UNITS[found[2] or ""]


ADDRESS: Final = AddressType()
BYTES: Final = BytesType()
SECONDS: Final = SecondsType(0)
SHARE: Final = ShareType(0, 1)
