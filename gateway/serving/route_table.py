"""Reads the header of a request: its target and timeout, and whether the body can be a review.

Paths: ``/mutate`` and ``/validate`` are all policies of a phase, ``/mutate/ENTRY/REVISION`` and
``/validate/ENTRY/REVISION`` those of one entry; its revision may be left out. If the revision is neither the entry's
nor that of a former entry, this process has not read what is registered: what it knows is the entry of that name. A
path is compared as it was sent, without decoding: kube-apiserver sends it as it was registered, and names have no
character that needs encoding. With a directory of hooks, the gateway also serves shell-operator's paths:
``/hooks/ID`` is the entry of a hook's binding, and ``GET /healthz`` is answered.
"""

import re
from typing import Final
from urllib.parse import parse_qsl

from gateway.engine.trace_context import NO_TRACE, Parent, TraceContext, parent_of
from gateway.hooks.configuration.paths import ID_PATHS, HookPath
from gateway.registration.entries import REVISION_DIGITS
from gateway.serving import web
from gateway.serving.loaded_configuration import Configurations
from gateway.serving.plans import PATHS, UNKNOWN_REVISION, Target
from gateway.serving.refusals import Refusal, Refused, quote

HEALTH: Final = "/healthz"
"""The path of shell-operator's health check."""


NOT_SERVING: Final = "the gateway is starting or stopping"

_REVISION: Final = re.compile(rf"/[0-9a-f]{{{REVISION_DIGITS}}}\Z")


class RouteTable:
    """The paths that can be called now.

    ``not_ready`` is the reason why no review can be judged yet, or None. ``has_hooks``: shell-operator's paths are
    served.

    Args:
        configurations: has the configuration in force.
        hooks: the name of the configurations that hooks are registered in; "" without a directory of hooks.
    """

    def __init__(self, configurations: Configurations, hooks: str = "") -> None:
        self._configurations = configurations
        self._hooks = hooks
        self.has_hooks = bool(hooks)
        self.not_ready: str | None = NOT_SERVING

    def target(self, path: str) -> Target | None:
        """The target at a path, in the configuration in force; None if there is none."""
        configuration = self._configurations.current
        found = configuration.targets.get(path)
        if found is None and _REVISION.search(path):
            entry = configuration.targets.get(path[: -REVISION_DIGITS - 1])
            if entry is None or entry.entry is None:
                return None
            return entry if entry.revision else Target(entry.phase, entry.entry, UNKNOWN_REVISION)
        if found is None and self.has_hooks and path.startswith(ID_PATHS):
            return configuration.hook(HookPath(self._hooks, path.removeprefix(ID_PATHS)))
        return found


def requested(request: web.BaseRequest) -> tuple[str, str | None]:
    """The path, and the value of the query parameter ``timeout``; None without one."""
    written = request.raw_path
    if not written.startswith("/"):
        # RFC 9112, 3.2.2: "a server MUST accept the absolute-form in requests".
        written = request.rel_url.raw_path_qs
    path, _, query = written.partition("?")
    if query.startswith("timeout=") and "&" not in query and "%" not in query:
        # What the API server sends.
        return path, query.removeprefix("timeout=")
    return path, next((value for name, value in parse_qsl(query) if name == "timeout"), None)


def require_review(request: web.BaseRequest, path: str, not_ready: str | None) -> None:
    """Raise Refused unless the header is that of a review, and the gateway is ready."""
    if request.method != "POST":
        raise Refused(Refusal.METHOD, f"{quote(request.method)} is not for {path}; POST an AdmissionReview")
    if not_ready is not None:
        raise Refused(Refusal.NOT_READY, f"no review can be judged yet: {not_ready}")
    content_type = request.headers.get("Content-Type")
    if content_type != "application/json":
        _require_json(request, content_type)
    if "Transfer-Encoding" in request.headers:
        _require_chunks(request)
    encoding = ", ".join(request.headers.getall("Content-Encoding", ("identity",)))
    if encoding.lower() != "identity":
        why = f"Content-Encoding {quote(encoding)} is not supported; send the AdmissionReview as it is"
        raise Refused(Refusal.CONTENT_ENCODING, why)


def is_healthy(request: web.BaseRequest, path: str, routes: RouteTable) -> bool:
    """Whether this is shell-operator's health check, which passes whenever the gateway answers.

    Raises:
        Refused: the method is not GET.
    """
    if path != HEALTH or not routes.has_hooks:
        return False
    if request.method not in {"GET", "HEAD"}:
        raise Refused(Refusal.METHOD, f"{quote(request.method)} is not for {HEALTH}; GET it")
    return True


def unknown(path: str, routes: RouteTable) -> Refused:
    """The refusal of a path that does not exist."""
    if path.startswith(ID_PATHS) and routes.has_hooks:
        text = (
            f"nothing at {quote(path)}: no hook has a binding with this id; `admission-gateway check --hooks-dir DIR` "
            "shows those that there are"
        )
        return Refused(Refusal.PATH, text)
    head, slash, name = path[1:].partition("/")
    # An entry's name is exactly one segment, and so is its revision.
    if f"/{head}" in PATHS.values() and slash and name and "/" not in _REVISION.sub("", name):
        return no_entry(path)
    return Refused(Refusal.PATH, f"nothing at {quote(path)}; POST an AdmissionReview to {' or '.join(PATHS.values())}")


def no_entry(path: str) -> Refused:
    """The refusal of an entry that does not exist: no verdict, so that the registration's failurePolicy applies."""
    text = (
        f"nothing at {quote(path)}: the configuration has no such entry; `admission-gateway check` "
        "shows those that there are, `admission-gateway render` registers them"
    )
    return Refused(Refusal.PATH, text)


def _require_chunks(request: web.BaseRequest) -> None:
    """Refuse a Transfer-Encoding that another server may understand in another way.

    RFC 9112, 6.1: "A server that receives a request message with a transfer coding it does not understand SHOULD
    respond with 501". A coding under ``chunked`` would be read as plain; and kube-apiserver sends none at all.
    """
    encoding = ", ".join(request.headers.getall("Transfer-Encoding"))
    if encoding.lower() != "chunked":
        why = f"Transfer-Encoding {quote(encoding)} is not supported; send Content-Length"
        raise Refused(Refusal.BODY_FRAMING, why)


def _require_json(request: web.BaseRequest, content_type: str | None) -> None:
    """Refuse a Content-Type that does not mean JSON in UTF-8."""
    next_step = "send the AdmissionReview as application/json"
    if content_type is None:
        raise Refused(Refusal.CONTENT_TYPE, f"no Content-Type; {next_step}")
    charset = (request.charset or "utf-8").lower()
    if request.content_type.lower() != "application/json" or charset not in {"utf-8", "utf8"}:
        raise Refused(Refusal.CONTENT_TYPE, f"Content-Type {quote(content_type)} is not supported; {next_step}")


def parent(request: web.BaseRequest) -> Parent | None:
    """The API server's span, of which the review is a part; None without valid headers."""
    traceparents = request.headers.getall("traceparent", ())
    return parent_of(traceparents, request.headers.getall("tracestate", ())) if traceparents else None


def passed_on(parent: Parent | None) -> TraceContext:
    """The context of a review that the gateway does not trace."""
    if parent is None:
        return NO_TRACE
    return TraceContext(traceparent=parent.traceparent, tracestate=parent.tracestate)
