"""The worker of agnhost's policies, and functions that they share."""

from importlib.metadata import version
from typing import Any, Final

from admission_worker import Deny, GroupVersionResource, Request, Worker, deny

worker = Worker("agnhost", version=version("admission-worker"))

BAD_REQUEST: Final = 400
"""kube-apiserver's code for a denial without one."""

PODS: Final = GroupVersionResource(version="v1", resource="pods")
CONFIGMAPS: Final = GroupVersionResource(version="v1", resource="configmaps")

KEY: Final = "webhook-e2e-test"
UNWANTED: Final = "webhook-disallow"
"""The label, or the key of data, with which the end-to-end tests mark objects to deny."""


class UnexpectedResourceError(Exception):
    """Raised where agnhost's handler returns nil, and crashes."""


def denial(message: str = "", *, reason: str = "", code: int = BAD_REQUEST) -> Deny:
    """A denial in agnhost's form: a message or a reason, and mostly no code."""
    return deny(message, code=code, reason=reason)


def written(resource: GroupVersionResource | None) -> str:
    """A resource in Go's format: ``{ v1 pods}``."""
    found = resource or GroupVersionResource()
    return f"{{{found.group} {found.version} {found.resource}}}"


def expect(request: Request, resource: GroupVersionResource) -> None:
    """Raise for a resource on which agnhost's handler crashes.

    Raises:
        UnexpectedResourceError: the request is about another resource.
    """
    if request.resource != resource:
        message = f"expect resource to be {written(resource)}"
        raise UnexpectedResourceError(message)


def unknown_kind(whole: dict[str, Any] | None, kind: str) -> Deny | None:
    """The denial of an object that agnhost cannot decode, since its scheme does not have the object's kind.

    Args:
        whole: the object. None, and one without a kind, are taken for an empty object of the expected one.
        kind: the expected one, of the core group.
    """
    found = whole or {}
    version_, name = found.get("apiVersion") or "v1", found.get("kind") or kind
    if (version_, name) == ("v1", kind):
        return None
    return denial(f'no kind "{name}" is registered for version "{version_}" in scheme "pkg/runtime/scheme.go:111"')


def members(value: Any, *path: str) -> dict[str, Any]:
    """An object in a value; empty without one."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}
