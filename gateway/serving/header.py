"""What the header of a request tells: which phase is asked, for how long, and whether the body can be a review."""

from collections.abc import Callable
from typing import Final
from urllib.parse import parse_qsl

from aiohttp import web

from gateway.policies import Phase
from gateway.serving.refusals import Refusal, Refused, quote

_PHASES: Final = {"/mutate": Phase.MUTATING, "/validate": Phase.VALIDATING}


def target(request: web.BaseRequest) -> tuple[str, str | None]:
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


def admitted(request: web.BaseRequest, path: str, not_ready: Callable[[], str | None]) -> Phase:
    """Which phase is asked, if the header is as it should be; Refused if not.

    ``not_ready`` says why no review can be judged yet, or None.
    """
    phase = _PHASES.get(path)
    if phase is None:
        raise Refused(Refusal.PATH, f"nothing at {quote(path)}; POST an AdmissionReview to {' or '.join(_PHASES)}")
    if request.method != "POST":
        raise Refused(Refusal.METHOD, f"{quote(request.method)} is not for {path}; POST an AdmissionReview")
    why = not_ready()
    if why is not None:
        raise Refused(Refusal.NOT_READY, f"no review can be judged yet: {why}")
    content_type = request.headers.get("Content-Type")
    if content_type != "application/json":
        _require_json(request, content_type)
    encoding = request.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        why = f"Content-Encoding {quote(encoding)} is not supported; send the AdmissionReview as it is"
        raise Refused(Refusal.CONTENT_ENCODING, why)
    return phase


def _require_json(request: web.BaseRequest, content_type: str | None) -> None:
    """Refuse a Content-Type that does not mean JSON in UTF-8."""
    next_step = "send the AdmissionReview as application/json"
    if content_type is None:
        raise Refused(Refusal.CONTENT_TYPE, f"no Content-Type; {next_step}")
    charset = (request.charset or "utf-8").lower()
    if request.content_type.lower() != "application/json" or charset not in {"utf-8", "utf8"}:
        raise Refused(Refusal.CONTENT_TYPE, f"Content-Type {quote(content_type)} is not supported; {next_step}")
