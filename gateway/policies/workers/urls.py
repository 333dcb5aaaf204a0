"""A URL as Go's net/url takes it apart (RFC 3986, with its exceptions), as far as a webhook's url is judged by that.

Kubernetes hands the url to ``url.Parse`` and repeats its error word for word, so what is an error, and which of several
is reported, is decided here in Go's order. Go works on bytes: within this module a text is UTF-8 read as Latin-1.
"""

import ipaddress
import re
from typing import Final

from msgspec import Struct

from gateway.policies import field_errors

_UNRESERVED: Final = frozenset("-_.~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_HOST: Final = _UNRESERVED | frozenset("!$&'()*+,;=:[]<>\"")
"""What a host may hold as it is; also, which ASCII characters a zone may hold in escaped form."""
_USERINFO: Final = _UNRESERVED | frozenset("!$&'()*+,;=:%@")
_USERINFO_PLAIN: Final = _UNRESERVED | frozenset("$&+,;=")
_ZONE: Final = "%25"

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ESCAPE = re.compile(r"%(?P<code>[0-9A-Fa-f]{2})?")
_PORT = re.compile(r"(:[0-9]*)?")


class Url(Struct, frozen=True, kw_only=True):
    """The parts that a webhook's url is judged by; ``user`` is None where there is none, which is not an empty one."""

    scheme: str = ""
    host: str = ""
    user: str | None = None
    query: str = ""
    fragment: str = ""


class UrlError(Exception):
    """Not a URL; ``str(error)`` is Go's message."""


def parse_url(text: str) -> Url:
    """Take a URL apart.

    Raises:
        UrlError: ``parse "TEXT": why not``, in Go's words.
    """
    source = text.encode().decode("latin-1")
    before, _, fragment = source.partition("#")
    try:
        url = _parse(before)
    except UrlError as error:
        raise UrlError(f"parse {_quote(before)}: {error}") from None
    try:
        fragment = _unescape(fragment)
    except UrlError as error:
        raise UrlError(f"parse {_quote(source)}: {error}") from None
    return Url(
        scheme=url.scheme,
        host=_text(url.host),
        user=url.user,
        query=_text(url.query),
        fragment=_text(fragment),
    )


def _parse(source: str) -> Url:
    if _CONTROL.search(source):
        raise UrlError("net/url: invalid control character in URL")
    if source.startswith(":"):
        raise UrlError("missing protocol scheme")
    match = _SCHEME.match(source)
    scheme = match[0][:-1].lower() if match else ""
    rest, _, query = source[match.end() if match else 0 :].partition("?")
    if not rest.startswith("/"):
        if not scheme and ":" in rest.partition("/")[0]:
            raise UrlError("first path segment in URL cannot contain colon")
        if not scheme:
            _unescape(rest)
        return Url(scheme=scheme, query=query)
    host, user = "", None
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        host, user = _authority(scheme, authority)
        rest = slash + path
    _unescape(rest)
    return Url(scheme=scheme, host=host, user=user, query=query)


def _authority(scheme: str, authority: str) -> tuple[str, str | None]:
    """The host, and the user as it would be written again."""
    userinfo, at, address = authority.rpartition("@")
    host = _host(scheme, address)
    if not at:
        return host, None
    if not set(userinfo) <= _USERINFO:
        raise UrlError("net/url: invalid userinfo")
    name, colon, password = userinfo.partition(":")
    name, password = _unescape(name), _unescape(password)
    return host, "".join(map(_escape_user, name)) + colon + "".join(map(_escape_user, password))


def _host(scheme: str, host: str) -> str:
    bracket = host.rfind("[")
    if bracket > 0:
        raise UrlError("invalid IP-literal")
    if bracket == 0:
        return _ip_literal(host)
    strict = scheme in {"http", "https"}
    colon = host.find(":") if strict else host.rfind(":")
    if colon >= 0:
        _check_port(host[colon:])
    return _unescape(host, _HOST)


def _ip_literal(host: str) -> str:
    """An address in brackets: "[fe80::1]", "[fe80::1%25en0]", "[fe80::1]:80" (RFC 6874 defines the zone)."""
    end = host.rfind("]")
    if end < 0:
        raise UrlError("missing ']' in host")
    _check_port(host[end + 1 :])
    inner = host[1:end]
    at = inner.find(_ZONE)
    name = _unescape(inner if at < 0 else inner[:at], _HOST) + ("" if at < 0 else _unescape(inner[at:], _HOST, _HOST))
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        raise UrlError(f"invalid host: ParseAddr({_quote(name)}): unable to parse IP") from None
    if address.version == 4:  # noqa: PLR2004 - the version of IP
        raise UrlError("invalid IP-literal")
    return f"[{name}]{host[end + 1 :]}"


def _check_port(colon_port: str) -> None:
    if not _PORT.fullmatch(colon_port):
        raise UrlError(f"invalid port {_quote(colon_port)} after host")


def _unescape(source: str, plain: frozenset[str] | None = None, escaped: frozenset[str] | None = None) -> str:
    """The text with %XX decoded.

    ``plain`` is given for a host: which ASCII characters may stand there as they are. An ASCII character must not be
    escaped in a host then, unless it is one of ``escaped``, a blank, or the percent sign of a zone.
    """
    decoded = []
    at = 0
    while at < len(source):
        char = source[at]
        if char != "%":
            if plain is not None and char < "\x80" and char not in plain:
                raise UrlError(f"invalid character {_quote(char)} in host name")
            decoded.append(char)
            at += 1
            continue
        match = _ESCAPE.match(source, at)
        code = match["code"] if match else None
        if code is None:
            raise UrlError(f"invalid URL escape {_quote(source[at : at + 3])}")
        if plain is not None and not _may_be_escaped(chr(int(code, 16)), escaped):
            raise UrlError(f"invalid URL escape {_quote('%' + code)}")
        decoded.append(chr(int(code, 16)))
        at += 3
    return "".join(decoded)


def _may_be_escaped(char: str, escaped: frozenset[str] | None) -> bool:
    if char == "%":
        return True
    if escaped is None:
        # RFC 3986, page 21: "in the host component %-encoding can only be used for non-ASCII bytes".
        return char >= "\x80"
    return char == " " or char in escaped


def _escape_user(char: str) -> str:
    return char if char in _USERINFO_PLAIN else f"%{ord(char):02X}"


def _text(source: str) -> str:
    return source.encode("latin-1").decode(errors="surrogateescape")


def _quote(source: str) -> str:
    return field_errors.quote(_text(source))
