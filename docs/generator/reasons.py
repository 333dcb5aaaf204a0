"""reasons.md: the reason codes, from the enum; and which of them this version gives at all."""

import re
from pathlib import Path
from typing import Final

from docs.generator.markdown import anchor, code, prose, table
from docs.generator.source import documented
from gateway import reasons
from gateway.engine.response_builder import INTERNAL_ERROR, RETRY_AFTER_SECONDS, STATUSES
from gateway.reasons import Reason

_USE: Final = re.compile(r"\bReason\.([A-Z_]+)")
_REFUSE_ALWAYS: Final = {Reason.NAMESPACE_UNKNOWN, Reason.DRY_RUN_UNSUPPORTED, Reason.PATCH_CONFLICT}
"""What kube-apiserver refuses under Ignore as well, since it is no error of a call; and what the operator wants refused
(tests/docs/test_reference.py checks both)."""

_HEAD: Final = prose("""
    # Reason codes

    What each reason code means. Messages, metrics, log lines and audit annotations have the same word. What to do about
    each: [denied.md](../denied.md#reason-codes).
""")
_TAIL: Final = prose(f"""
    A failure refuses the request under failurePolicy ``Fail``. Under ``Ignore`` the request is allowed with a warning
    to the user, an audit annotation, a metric and a log line, except for the codes with "whatever the failurePolicy".
    Failures of a policy whose mode is ``warn`` or ``audit`` never refuse. A verdict within
    [staleIfError](../policies.md#cache) for the same document replaces a failed call. With code 429 the answer has
    ``retryAfterSeconds: {RETRY_AFTER_SECONDS}``.
""")


def page(root: Path) -> str:
    """The page's text."""
    texts = documented(root / "gateway" / "reasons.py", "Reason")
    used = _used(root)
    rows = [(_linked(each), prose(texts[each.name]), _status(each, used)) for each in Reason]
    return (
        "\n\n".join(
            [
                _HEAD,
                prose(reasons.__doc__ or ""),
                table(("Code", "Meaning", "HTTP code of a refusal"), rows),
                _TAIL,
            ]
        )
        + "\n"
    )


def _linked(reason: Reason) -> str:
    return f"[{code(reason.value)}](../denied.md#{anchor(reason.value)})"


def _status(reason: Reason, used: frozenset[str]) -> str:
    if reason.name not in used:
        return "not given by this version"
    if reason is Reason.DENIED:
        return "the worker's, 403 if it names none"
    if reason is Reason.REQUEST_TOO_LARGE:
        return "413, whatever the failurePolicy; 500 for many values"
    code, _ = STATUSES.get(reason, INTERNAL_ERROR)
    return f"{code}, whatever the failurePolicy" if reason in _REFUSE_ALWAYS else str(code)


def _used(root: Path) -> frozenset[str]:
    """The reasons that some module of the gateway gives."""
    modules = (path for path in (root / "gateway").rglob("*.py") if path.name != "reasons.py")
    return frozenset(name for path in modules for name in _USE.findall(path.read_text()))
