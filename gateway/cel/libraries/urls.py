"""URLs: Kubernetes' library over Go's net/url. Only absolute URLs and paths are URLs (ParseRequestURI)."""

import re
from typing import Any, ClassVar, Final

from gateway.cel.libraries.netip import Unreadable, read_address
from gateway.cel.libraries.overloads import Library, function, member
from gateway.cel.values.faults import Fault, no_such_overload
from gateway.cel.values.reflection import Opaque
from gateway.cel.values.strconv import go_quoted
from gateway.cel.values.types import Type, written

_UNRESERVED: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
_PATH: Final = _UNRESERVED + b"$&+,/:;=@"
_PATH_KEPT: Final = _UNRESERVED + b"$&+,/:;=@!'()*[]%"
_HOST: Final = _UNRESERVED + b"!$&'()*+,;=:[]<>\""
_USER: Final = _UNRESERVED + b":!$&'()*+,;=%@"
_NOT_ASCII: Final = bytes(range(0x80, 0x100))
_CONTROLS: Final = re.compile(rb"[\x00-\x1f\x7f]")
_SCHEME: Final = re.compile(rb"([A-Za-z][A-Za-z0-9+.-]*):")
_ESCAPE: Final = re.compile(rb"%([0-9A-Fa-f]{2})")
_PORT: Final = re.compile(rb":[0-9]*|")
_ZONE_ESCAPES: Final = frozenset({b"%25", b"%20"})
_ASCII_END: Final = 0x80


class URL(Opaque, frozen=True, eq=False):
    """What Go's url.URL keeps; bytes as they came, where they came escaped."""

    scheme: bytes
    opaque: bytes
    user: bytes
    host: bytes
    raw_path: bytes
    query: bytes
    force_query: bool
    fragment: bytes

    CEL: ClassVar[Type] = written("kubernetes.URL")

    def equals(self, other: Any) -> bool:
        """``==``; an error for any other type."""
        if not isinstance(other, URL):
            raise no_such_overload()
        return _text(self) == _text(other)


def _text(url: URL) -> tuple[bytes, ...]:
    """What two URLs have in common that are written alike (url.String)."""
    query = b"?" + url.query if url.query or url.force_query else b""
    return url.scheme, url.opaque, url.user, url.host, _escaped_path(url), query, url.fragment


def _wrong(text: bytes, reason: str) -> Fault:
    shown = go_quoted(text.decode(errors="replace"))
    return Fault(f"URL parse error during conversion from string: parse {shown}: {reason}")


class _Invalid(Exception):  # noqa: N818 - it is named after what the text is
    """Why a text is no URL, in Go's words."""


def _parse(text: bytes, *, request: bool) -> URL:
    """url.parse; ``request``: only what can stand in an HTTP request, and # is like any other character."""
    fragment = b""
    if not request:
        text, _, fragment = text.partition(b"#")
    if _CONTROLS.search(text):
        raise _Invalid("net/url: invalid control character in URL")
    if not text and request:
        raise _Invalid("empty url")
    if text == b"*":
        return URL(b"", b"", b"", b"", b"*", b"", force_query=False, fragment=fragment)
    scheme, rest = _scheme(text)
    force = rest.endswith(b"?") and rest.count(b"?") == 1
    rest, _, query = rest.partition(b"?")
    if not rest.startswith(b"/"):
        if scheme:
            return URL(scheme, rest, b"", b"", b"", query, force_query=force, fragment=_unescape(fragment))
        raise _Invalid("invalid URI for request")
    user = host = b""
    if (scheme or (not request and not rest.startswith(b"///"))) and rest.startswith(b"//"):
        authority, slash, path = rest[2:].partition(b"/")
        rest = slash + path
        user, host = _authority(scheme, authority)
    _unescape(rest)
    return URL(scheme, b"", user, host, rest, query, force_query=force, fragment=_unescape(fragment))


def _scheme(text: bytes) -> tuple[bytes, bytes]:
    if text.startswith(b":"):
        raise _Invalid("missing protocol scheme")
    match = _SCHEME.match(text)
    return (match[1].lower(), text[match.end() :]) if match else (b"", text)


def _authority(scheme: bytes, authority: bytes) -> tuple[bytes, bytes]:
    user, at, host = authority.rpartition(b"@")
    host = _host(scheme, host)
    if at and user.translate(None, _USER):
        raise _Invalid("net/url: invalid userinfo")
    _unescape(user)
    return user + at, host


def _host(scheme: bytes, host: bytes) -> bytes:
    if b"[" in host:
        return _literal(host)
    first, last = host.find(b":"), host.rfind(b":")
    if first >= 0:
        start = first if scheme in {b"http", b"https"} else last
        if not _PORT.fullmatch(host[start:]):
            raise _Invalid(f"invalid port {go_quoted(host[start:].decode(errors='replace'))} after host")
    return _unescape_host(host)


def _literal(host: bytes) -> bytes:
    """``[::1]:80``."""
    end = host.rfind(b"]")
    if host.rfind(b"[") > 0:
        raise _Invalid("invalid IP-literal")
    if end < 0:
        raise _Invalid("missing ']' in host")
    port = host[end + 1 :]
    if not _PORT.fullmatch(port):
        raise _Invalid(f"invalid port {go_quoted(port.decode(errors='replace'))} after host")
    name, percent, zone = host[1:end].partition(b"%25")
    name = _unescape_host(name) + (_unescape_zone(percent + zone) if percent else b"")
    try:
        address = read_address(name.decode(errors="replace"))
    except Unreadable as error:
        raise _Invalid(f"invalid host: {error.message}") from error
    if address.version == 4:  # noqa: PLR2004 - IPv4
        raise _Invalid("invalid IP-literal")
    return b"[" + name + b"]" + port


def _unescape(text: bytes) -> bytes:
    _check_escapes(text)
    return _ESCAPE.sub(lambda match: bytes([int(match[1], 16)]), text)


def _unescape_host(text: bytes) -> bytes:
    """Only bytes that are not ASCII may be escaped in a host."""
    _check_escapes(text)
    for match in _ESCAPE.finditer(text):
        if int(match[1], 16) < _ASCII_END and match[0] != b"%25":
            raise _Invalid(f"invalid URL escape {go_quoted(match[0].decode())}")
    _check_host(text)
    return _unescape(text)


def _unescape_zone(text: bytes) -> bytes:
    _check_escapes(text)
    for match in _ESCAPE.finditer(text):
        if match[0] not in _ZONE_ESCAPES and int(match[1], 16) not in _HOST:
            raise _Invalid(f"invalid URL escape {go_quoted(match[0].decode())}")
    _check_host(text)
    return _unescape(text)


def _check_escapes(text: bytes) -> None:
    start = -1
    while (start := text.find(b"%", start + 1)) >= 0:
        if not _ESCAPE.match(text, start):
            raise _Invalid(f"invalid URL escape {go_quoted(text[start : start + 3].decode(errors='replace'))}")


def _check_host(text: bytes) -> None:
    wrong = _ESCAPE.sub(b"", text).translate(None, _HOST + _NOT_ASCII)
    if wrong:
        raise _Invalid(f"invalid character {go_quoted(chr(wrong[0]))} in host name")


def _escaped_path(url: URL) -> bytes:
    """The path as it came if it is validly escaped, else escaped anew (url.EscapedPath)."""
    if url.raw_path == b"*" or not url.raw_path.translate(None, _PATH_KEPT):
        return url.raw_path
    return b"".join(bytes([byte]) if byte in _PATH else b"%%%02X" % byte for byte in _unescape(url.raw_path))


def check_request_uri(text: str) -> str | None:
    """Why a text is no URL that can stand in a request, as Go says it; or None."""
    raw = text.encode(errors="replace")
    try:
        _parse(raw, request=True)
    except _Invalid as error:
        return f"parse {go_quoted(text)}: {error}"
    return None


def _url(text: str) -> URL:
    raw = text.encode(errors="replace")
    try:
        _parse(raw, request=True)
    except _Invalid as error:
        raise _wrong(raw, str(error)) from error
    try:
        return _parse(raw, request=False)
    except _Invalid as error:
        raise _wrong(raw.partition(b"#")[0], str(error)) from error


def _host_and_port(url: URL) -> tuple[bytes, bytes]:
    host, port = url.host, b""
    colon = host.rfind(b":")
    if colon >= 0 and _PORT.fullmatch(host[colon:]):
        host, port = host[:colon], host[colon + 1 :]
    if host.startswith(b"[") and host.endswith(b"]"):
        host = host[1:-1]
    return host, port


def _query(url: URL) -> dict[str, list[str]]:
    """What can be read of the query; what cannot is left out (url.Query)."""
    found: dict[str, list[str]] = {}
    for part in url.query.split(b"&"):
        if not part or b";" in part:
            continue
        key, _, value = part.partition(b"=")
        try:
            name, text = (_decoded(_unescape(piece.replace(b"+", b" "))) for piece in (key, value))
        except _Invalid:
            continue
        found.setdefault(name, []).append(text)
    return found


def _decoded(raw: bytes) -> str:
    return raw.decode(errors="replace")


_URL: Final[Type] = URL.CEL

URLS: Final = Library(
    overloads=(
        function("string_to_url", "url(string) -> kubernetes.URL", _url),
        function("is_url_string", "isURL(string) -> bool", lambda text: check_request_uri(text) is None),
        member("url_get_scheme", f"{_URL.name}.getScheme() -> string", lambda url: _decoded(url.scheme)),
        member("url_get_host", f"{_URL.name}.getHost() -> string", lambda url: _decoded(url.host)),
        member(
            "url_get_hostname", f"{_URL.name}.getHostname() -> string", lambda url: _decoded(_host_and_port(url)[0])
        ),
        member("url_get_port", f"{_URL.name}.getPort() -> string", lambda url: _decoded(_host_and_port(url)[1])),
        member(
            "url_get_escaped_path", f"{_URL.name}.getEscapedPath() -> string", lambda url: _decoded(_escaped_path(url))
        ),
        member("url_get_query", f"{_URL.name}.getQuery() -> map(string, list(string))", _query),
    ),
)
