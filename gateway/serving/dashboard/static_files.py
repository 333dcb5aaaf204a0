"""The files of the dashboard's page: which there are, and the headers with which they are sent.

They are in the package as they are: no step builds them. They hold no data, so a client without a token may load them.

The Content-Security-Policy allows files of this origin only: no inline script or style, no other host, no frame around
the page. ``trusted-types 'none'`` makes the browser refuse to read HTML from a text, so that a name or a message from a
request or a worker can never become markup.
"""

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Final

from gateway.serving import web
from gateway.serving.refusals import SERVER

_SCRIPT: Final = "text/javascript; charset=utf-8"
_STYLE: Final = "text/css; charset=utf-8"
_TEXT: Final = "text/plain; charset=utf-8"

_TYPES: Final = {"css": _STYLE, "html": "text/html; charset=utf-8", "js": _SCRIPT, "svg": "image/svg+xml"}

_SOURCES: Final = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
)

HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "; ".join(_SOURCES),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Server": SERVER,
    "X-Content-Type-Options": "nosniff",
}
"""Of every answer of the dashboard, its data too."""


@cache
def _files() -> Mapping[str, bytes]:
    """The content of each file, by its path below ``/ui/``."""
    root = resources.files(__package__) / "static"
    found: dict[str, bytes] = {}
    pending = [(root, "")]
    while pending:
        folder, prefix = pending.pop()
        for each in folder.iterdir():
            if each.is_dir():
                pending.append((each, f"{prefix}{each.name}/"))
            else:
                found[prefix + each.name] = each.read_bytes()
    return found


def file_page(path: str) -> web.Response | None:
    """The answer with a file; None if there is none.

    Args:
        path: below ``/ui/``; empty: the page itself.
    """
    name = path or "index.html"
    content = _files().get(name)
    if content is None:
        return None
    content_type = _TYPES.get(name.rpartition(".")[2], _TEXT)
    return web.Response(body=content, headers={**HEADERS, "Content-Type": content_type})
