"""What the header of a request tells: who is asked, for how long, and whether the body can be a review.

Paths: ``/mutate`` and ``/validate`` are all policies of a phase, ``/mutate/ENTRY`` and ``/validate/ENTRY`` those of one
entry. An entry's name is compared as it was sent, without decoding: kube-apiserver sends it as it was registered, and
names have no character that anybody would encode. Where there is a directory of hooks, there are shell-operator's paths
besides: ``/hooks/ID`` is the entry of a hook's binding, and ``GET /healthz`` is answered.
"""

import re
from typing import Final, Protocol
from urllib.parse import parse_qsl

from aiohttp import web

from gateway.hooks.configuration.paths import ID_PATHS
from gateway.policies.model import Phase
from gateway.serving.plans import Target
from gateway.serving.refusals import Refusal, Refused, quote

_PHASES: Final = {"/mutate": Phase.MUTATING, "/validate": Phase.VALIDATING}
_TARGETS: Final = {path: Target(phase) for path, phase in _PHASES.items()}

HEALTH: Final = "/healthz"
"""Where shell-operator says that it is there."""


class Gate(Protocol):
    """Who knows what can be asked at this moment."""

    def not_ready(self) -> str | None:
        """Why no review can be judged yet, or None when it can."""

    def knows(self, target: Target) -> bool:
        """Whether there is such a target."""

    @property
    def has_hooks(self) -> bool:
        """Whether shell-operator's paths are served."""

    def hook(self, identifier: str) -> Target | None:
        """The entry of the hook's binding with this id, if there is one."""


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


def admitted(request: web.BaseRequest, path: str, gate: Gate) -> Target:
    """Who is asked, if the header is as it should be; Refused if not."""
    target = _TARGETS.get(path) or _entry(path) or _hook(path, gate)
    if target is None:
        raise Refused(Refusal.PATH, f"nothing at {quote(path)}; POST an AdmissionReview to {' or '.join(_PHASES)}")
    if not gate.knows(target):
        raise unknown(target)
    if request.method != "POST":
        raise Refused(Refusal.METHOD, f"{quote(request.method)} is not for {path}; POST an AdmissionReview")
    why = gate.not_ready()
    if why is not None:
        raise Refused(Refusal.NOT_READY, f"no review can be judged yet: {why}")
    content_type = request.headers.get("Content-Type")
    if content_type != "application/json":
        _require_json(request, content_type)
    encoding = request.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        why = f"Content-Encoding {quote(encoding)} is not supported; send the AdmissionReview as it is"
        raise Refused(Refusal.CONTENT_ENCODING, why)
    return target


def is_healthy(request: web.BaseRequest, path: str, gate: Gate) -> bool:
    """Whether this is shell-operator's question for its health, which is good as long as anybody answers.

    Raises:
        Refused: it is asked otherwise than with GET.
    """
    if path != HEALTH or not gate.has_hooks:
        return False
    if request.method not in {"GET", "HEAD"}:
        raise Refused(Refusal.METHOD, f"{quote(request.method)} is not for {HEALTH}; GET it")
    return True


def unknown(target: Target) -> Refused:
    """There is no such entry. Not knowing is not allowing: this is no verdict, and the registration's failurePolicy
    decides.
    """
    path = next(path for path, phase in _PHASES.items() if phase is target.phase)
    text = (
        f"nothing at {quote(f'{path}/{target.entry}')}: the configuration has no such entry; `admission-gateway check` "
        "shows those that there are, `admission-gateway render` registers them"
    )
    return Refused(Refusal.PATH, text)


def _entry(path: str) -> Target | None:
    head, slash, name = path[1:].partition("/")
    phase = _PHASES.get(f"/{head}")
    # More than one segment is no name of an entry; nor is none.
    return Target(phase, name) if phase and slash and name and "/" not in name else None


def _hook(path: str, gate: Gate) -> Target | None:
    if not path.startswith(ID_PATHS) or not gate.has_hooks:
        return None
    target = gate.hook(path.removeprefix(ID_PATHS))
    if target is None:
        text = (
            f"nothing at {quote(path)}: no hook has a binding with this id; `admission-gateway check --hooks-dir DIR` "
            "shows those that there are"
        )
        raise Refused(Refusal.PATH, text)
    return target


def _require_json(request: web.BaseRequest, content_type: str | None) -> None:
    """Refuse a Content-Type that does not mean JSON in UTF-8."""
    next_step = "send the AdmissionReview as application/json"
    if content_type is None:
        raise Refused(Refusal.CONTENT_TYPE, f"no Content-Type; {next_step}")
    charset = (request.charset or "utf-8").lower()
    if request.content_type.lower() != "application/json" or charset not in {"utf-8", "utf8"}:
        raise Refused(Refusal.CONTENT_TYPE, f"Content-Type {quote(content_type)} is not supported; {next_step}")


_TRACEPARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
"""W3C Trace Context, 3.2: version, trace-id, parent-id, trace-flags; "the value ff is invalid", and so are zeros."""


def traceparent(request: web.BaseRequest) -> str:
    """The header of that name, "" without one. "If parsing fails, the vendor ... MUST NOT" go on with it."""
    written = request.headers.get("traceparent", "")
    return written if written and _TRACEPARENT.fullmatch(written) else ""
