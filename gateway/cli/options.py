"""Options as all commands have them: every flag is also an environment variable, every limit is a flag."""

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final, TypeVar

import click

from gateway.caching.limits import CacheLimits
from gateway.patching.limits import PatchLimits
from gateway.serving.limits import Limits
from gateway.transports.limits import TransportLimits

PREFIX: Final = "ADMISSION_GATEWAY_"
_LIMITS: Final = {Limits: "limit_", TransportLimits: "limit_", PatchLimits: "limit_patch_"}
_CACHE_LIMITS: Final = {CacheLimits: "limit_cache_"}
_TRANSPORT_LIMITS: Final = {TransportLimits: "limit_"}
"""The prefix of each kind's flags: ``--limit-body-bytes``, ``--limit-patch-operations``."""

_LARGEST_PORT: Final = 65_535

_F = TypeVar("_F", bound=Callable[..., Any])


def option(flag: str, **attributes: Any) -> Callable[[_F], _F]:
    """A click option that can also be given as ``ADMISSION_GATEWAY_FLAG``, which its help shows."""
    variable = PREFIX + flag.removeprefix("--").upper().replace("-", "_")
    return click.option(flag, envvar=variable, show_envvar=True, **({"show_default": True} | attributes))


def limit_options(command: _F) -> _F:
    """One option for each limit. What each bounds, and why: docs/reference/limits.md."""
    return _options(command, _LIMITS)


def cache_limit_options(command: _F) -> _F:
    """One option for each limit of the cache."""
    return _options(command, _CACHE_LIMITS)


def transport_limit_options(command: _F) -> _F:
    """One option for each limit of the calls to workers."""
    return _options(command, _TRANSPORT_LIMITS)


def _options(command: _F, owners: Mapping[type[Any], str]) -> _F:
    for owner, prefix in reversed(list(owners.items())):
        for each in reversed(fields(owner)):
            flag = f"--{prefix}{each.name}".replace("_", "-")
            kind = click.INT if isinstance(each.default, int) else click.FLOAT
            command = option(flag, type=kind, default=each.default, hidden=True)(command)
    return command


def chosen_limits(values: dict[str, Any]) -> tuple[Limits, TransportLimits, PatchLimits]:
    """The limits among a command's parameters, which are taken out of them.

    Raises:
        click.BadParameter: a limit that cannot work, and why.
    """
    made = _chosen(values, _LIMITS)
    return made[Limits], made[TransportLimits], made[PatchLimits]


def chosen_cache_limits(values: dict[str, Any]) -> CacheLimits:
    """The same of the cache."""
    limits: CacheLimits = _chosen(values, _CACHE_LIMITS)[CacheLimits]
    return limits


def chosen_transport_limits(values: dict[str, Any]) -> TransportLimits:
    """The same of the calls to workers."""
    limits: TransportLimits = _chosen(values, _TRANSPORT_LIMITS)[TransportLimits]
    return limits


def _chosen(values: dict[str, Any], owners: Mapping[type[Any], str]) -> dict[type[Any], Any]:
    try:
        return {
            owner: owner(**{each.name: values.pop(prefix + each.name) for each in fields(owner)})
            for owner, prefix in owners.items()
        }
    except ValueError as error:
        raise click.BadParameter(f"{error}; see docs/reference/limits.md") from None


class AddressType(click.ParamType[tuple[str, int]]):
    """``HOST:PORT``, ``[IPv6]:PORT`` or ``:PORT`` (all interfaces); port 0 takes a free one. Becomes (host, port)."""

    name = "HOST:PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, int]:
        """The address, or click's error that says what is wrong with it."""
        if isinstance(value, tuple):
            return value
        host, colon, port = value.rpartition(":")
        bracketed = host.startswith("[") and host.endswith("]")
        if not colon or not port.isascii() or not port.isdigit() or int(port) > _LARGEST_PORT:
            self.fail(f"{value!r} is not HOST:PORT with a port from 0 to {_LARGEST_PORT}", param, ctx)
        if ":" in host and not bracketed:
            self.fail(f"{value!r}: an IPv6 address stands in brackets, as in [::1]:8443", param, ctx)
        return (host[1:-1] if bracketed else host) or "0.0.0.0", int(port)  # noqa: S104 - ":PORT" asks for exactly that


class SecondsType(click.FloatRange):
    """Seconds, from 0: any number that a timer can be set to."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, or click's error that says what is wrong with it."""
        seconds = float(super().convert(value, param, ctx))
        if not math.isfinite(seconds):
            self.fail(f"{value!r} is not a finite number of seconds", param, ctx)
        return seconds


class ShareType(click.FloatRange):
    """A share: from 0, none, to 1, all."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number, or click's error that says what is wrong with it."""
        share = float(super().convert(value, param, ctx))
        if math.isnan(share):
            self.fail(f"{value!r} is not a number from 0 to 1", param, ctx)
        return share


ADDRESS: Final = AddressType()
SECONDS: Final = SecondsType(0)
SHARE: Final = ShareType(0, 1)
