"""The address of Redis: one URL, in redis-py's forms and two more.

    redis://[USER:PASSWORD@]HOST[:6379][/DB]                            one server
    rediss://…                                                          the same over TLS
    unix://[USER:PASSWORD@]/PATH[?db=DB]                                a socket
    redis+sentinel://[USER:PASSWORD@]HOST[:26379][,HOST…]/SERVICE[/DB]  the master that Sentinel reports
    redis+cluster://[USER:PASSWORD@]HOST[:6379][,HOST…]                 a Redis Cluster; any of its nodes
    rediss+sentinel://…, rediss+cluster://…                             the same over TLS

Options follow ``?`` and have redis-py's names; see ``OPTIONS``. User and password are for the Redis servers,
``sentinel_username`` and ``sentinel_password`` for the Sentinels. ``rediss+sentinel`` uses TLS for both. In user,
password and service, the characters ``/ ? # @ , :`` and ``%`` are written as ``%2F`` and so on.

Messages contain no part of the URL but names of options: a password that is not escaped may be anywhere in it.
"""

import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from msgspec import Struct, field

from gateway.bounds import MAX_PORT
from gateway.quoting import Redacted

REDIS_PORT: Final = 6379
SENTINEL_PORT: Final = 26379
_LARGEST_DB: Final = 2**31 - 1

_SCHEMES: Final = "redis, rediss, unix, redis+sentinel, rediss+sentinel, redis+cluster, rediss+cluster"
_TLS_OPTIONS: Final = (
    "ssl_ca_certs",
    "ssl_certfile",
    "ssl_keyfile",
    "ssl_cert_reqs",
    "ssl_check_hostname",
    "ssl_ciphers",
)
_SENTINEL_OPTIONS: Final = ("sentinel_username", "sentinel_password")

OPTIONS: Final = (*_TLS_OPTIONS, "client_name", "db", *_SENTINEL_OPTIONS)
"""The options after ``?``. Timeouts and numbers of connections are limits of the gateway, not options."""

_BOOLEANS: Final = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}
_CERT_REQS: Final = ("none", "optional", "required")


class RedisAddress(Redacted, Struct, frozen=True, kw_only=True):
    """A parsed URL. ``shown`` is the part that may be logged: the scheme.

    ``mode`` is server, unix, sentinel or cluster; ``hosts`` are host and port of each server, or of each Sentinel;
    ``options`` and ``sentinel_options`` are keyword arguments of redis-py.
    """

    shown: str
    mode: str
    tls: bool
    hosts: tuple[tuple[str, int], ...] = ()
    path: str = ""
    service: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    sentinel_options: Mapping[str, Any] = field(default_factory=dict)


def redis_address(url: str) -> RedisAddress:
    """Parse a URL.

    Raises:
        ValueError: it has none of the forms, or its TLS files cannot be used. The message states what is expected, and
            contains no part of the URL.
    """
    # A Secret created from a file often ends with a line break.
    url = url.strip()
    if any(each in url for each in "\r\n\t"):
        # urlsplit would remove them, and the password would be wrong without them.
        raise _wrong("contains a line break or a tab; in a password write %0A, %0D and %09")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise _wrong("cannot be parsed; write IPv6 addresses in brackets") from None
    form = _FORMS.get(parts.scheme)
    if form is None or not url.lower().startswith(f"{parts.scheme}://"):
        raise _wrong(f"has no known scheme; expected one of {_SCHEMES}")
    if "@" in parts.path + parts.query + parts.fragment or parts.fragment:
        raise _wrong("has a '@' or '#' after the host; in a password write / ? # @ as %2F %3F %23 %40")
    mode, tls = form
    options = _options(parts, tls=tls, sentinel=mode == "sentinel")
    userinfo, _, netloc = parts.netloc.rpartition("@")
    user, colon, password = userinfo.partition(":")
    if user:
        options["username"] = unquote(user)
    if colon:
        options["password"] = unquote(password)
    sentinel_options = {
        name.removeprefix("sentinel_"): options.pop(name) for name in _SENTINEL_OPTIONS & options.keys()
    }
    if tls and mode == "sentinel":
        sentinel_options |= {name: options[name] for name in _TLS_OPTIONS if name in options}
    made = _MODES[mode](parts, netloc, options)
    if tls:
        _try_tls(options)
    return RedisAddress(
        shown=parts.scheme, mode=mode, tls=tls, options=options, sentinel_options=sentinel_options, **made
    )


def _wrong(what: str) -> ValueError:
    return ValueError(f"the Redis URL {what}")


def _options(parts: SplitResult, *, tls: bool, sentinel: bool) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in OPTIONS:
            raise _wrong(f"has an unknown option; expected {', '.join(OPTIONS)}")
        if name in options:
            raise _wrong(f"has option {name} twice")
        if name in _TLS_OPTIONS and not tls:
            raise _wrong(f"has option {name}, which needs TLS: write rediss instead of redis")
        if name in _SENTINEL_OPTIONS and not sentinel:
            raise _wrong(f"has option {name}, but does not name Sentinels")
        options[name] = _option(name, value)
    return options


def _option(name: str, value: str) -> Any:
    if name == "db":
        return _db(value)
    if name == "ssl_check_hostname":
        if value.lower() not in _BOOLEANS:
            raise _wrong(f"has option {name} with another value than true or false")
        return _BOOLEANS[value.lower()]
    if name == "ssl_cert_reqs" and value not in _CERT_REQS:
        raise _wrong(f"has option {name} with another value than {', '.join(_CERT_REQS)}")
    return value


def _db(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(_LARGEST_DB)) and int(text) <= _LARGEST_DB):
        raise _wrong("names a database that is not a number")
    return int(text)


def _server(parts: SplitResult, netloc: str, options: dict[str, Any]) -> dict[str, Any]:
    hosts = _hosts(netloc, REDIS_PORT)
    if len(hosts) > 1:
        raise _wrong("names several hosts; for Sentinel or a cluster write redis+sentinel or redis+cluster")
    path = parts.path.strip("/")
    if path:
        if "db" in options:
            raise _wrong("names the database twice")
        options["db"] = _db(path)
    return {"hosts": hosts}


def _socket(parts: SplitResult, netloc: str, options: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001 - one of _MODES
    if netloc or not parts.path.strip("/"):
        raise _wrong("names no socket; expected unix:///PATH, with three slashes")
    return {"path": unquote(parts.path)}


def _sentinel(parts: SplitResult, netloc: str, options: dict[str, Any]) -> dict[str, Any]:
    service, _, db = parts.path.removeprefix("/").rstrip("/").partition("/")
    if not service:
        raise _wrong("names no service of the Sentinels; expected …/SERVICE after the hosts")
    if db:
        if "db" in options:
            raise _wrong("names the database twice")
        options["db"] = _db(db)
    return {"hosts": _hosts(netloc, SENTINEL_PORT), "service": unquote(service)}


def _cluster(parts: SplitResult, netloc: str, options: dict[str, Any]) -> dict[str, Any]:
    if parts.path.strip("/") not in {"", "0"} or options.pop("db", 0):
        raise _wrong("names a database, but a cluster has only database 0")
    return {"hosts": _hosts(netloc, REDIS_PORT)}


def _hosts(netloc: str, port: int) -> tuple[tuple[str, int], ...]:
    return tuple(_host(text, number, port) for number, text in enumerate(netloc.split(","), 1))


def _host(text: str, number: int, default: int) -> tuple[str, int]:
    host, bracket, rest = text.removeprefix("[").partition("]") if text.startswith("[") else ("", "", text)
    if bracket:
        colon, port = rest[:1], rest[1:]
    else:
        host, colon, port = rest.partition(":")
    if not host or colon not in {"", ":"}:
        raise _wrong(f"has no host at position {number}; expected HOST or HOST:PORT")
    host = unquote(host)
    if not _could_be_a_host(host):
        raise _wrong(
            f"has an invalid host at position {number}: it contains a space, or a label that is empty or too long"
        )
    if not colon:
        return host, default
    if not (port.isascii() and port.isdecimal() and len(port) <= len(str(MAX_PORT))):
        raise _wrong(
            f"has a port at position {number} that is not a number; in a password write / ? # @ : as %2F and so on"
        )
    if not 0 < int(port) <= MAX_PORT:
        raise _wrong(f"has a port at position {number} that is not from 1 to {MAX_PORT}")
    return host, int(port)


def _could_be_a_host(host: str) -> bool:
    """Whether the name can be resolved: Python's resolver uses the same encoding."""
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return host.isprintable() and not any(each.isspace() or each in "@/?#" for each in host)


def _try_tls(options: Mapping[str, Any]) -> None:
    """Report unusable files when the URL is read: later they would only show as failing connections."""
    try:
        context = ssl.create_default_context(cafile=options.get("ssl_ca_certs"))
        if "ssl_certfile" in options:
            context.load_cert_chain(options["ssl_certfile"], options.get("ssl_keyfile"))
        if "ssl_ciphers" in options:
            context.set_ciphers(options["ssl_ciphers"])
    except (OSError, ValueError) as error:
        # SSLError is an OSError. Its text contains no path and no key.
        raise _wrong(f"names files or ciphers of TLS that cannot be used: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        # Without a reason from OpenSSL, the attribute does not exist.
        return getattr(error, "reason", None) or "no certificate, key or cipher in them"
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__


_FORMS: Final = {
    "redis": ("server", False),
    "rediss": ("server", True),
    "unix": ("unix", False),
    "redis+sentinel": ("sentinel", False),
    "rediss+sentinel": ("sentinel", True),
    "redis+cluster": ("cluster", False),
    "rediss+cluster": ("cluster", True),
}

_MODES: Final[Mapping[str, Callable[[SplitResult, str, dict[str, Any]], dict[str, Any]]]] = {
    "server": _server,
    "unix": _socket,
    "sentinel": _sentinel,
    "cluster": _cluster,
}
