"""``no-privileged``: denies privileged containers, init and ephemeral containers included.

The policy judges Pods (with their ``ephemeralcontainers``) and the Pod templates of workloads, so that the denial
reaches the author of a Deployment and not its ReplicaSet. It ignores a container that was already privileged with the
same
image: the UPDATE does not add it, and a denial would prevent users from labelling or deleting old Pods. The Pods of an
old template are judged when they are created.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from admission_worker import Answer, Cause, Request, deny
from admission_worker.json_text import quoted
from admission_worker.samples import pod_specs
from admission_worker.samples.pod_specs import Container, text
from admission_worker.samples.sample_worker import worker


class NoPrivileged(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Settings of no-privileged.

    Attributes:
        exempt_images: ``exemptImages``: globs of images that may run privileged, compared with the image as it is
            written; ``*`` matches slashes too, as in ``registry.example.com/agents/*``.
    """

    exempt_images: tuple[str, ...] = ()


@worker.validating(
    "no-privileged",
    settings=NoPrivileged,
    inputs=pod_specs.claims(pod_specs.ALL, ("name", "image", "securityContext/privileged")),
)
def no_privileged(request: Request, settings: NoPrivileged) -> Answer | None:
    """Denies privileged containers in Pods and in the templates of what creates Pods."""
    if request.operation not in {"CREATE", "UPDATE"}:
        return None
    causes = [
        _cause(container)
        for container in pod_specs.containers(request, pod_specs.ALL)
        if _is_privileged(container.value)
        and not _was_so(container)
        and not any(fnmatchcase(text(container.value.get("image")), glob) for glob in settings.exempt_images)
    ]
    if not causes:
        return None
    return deny(f"privileged containers are not allowed: {'; '.join(cause.message for cause in causes)}", causes=causes)


def _is_privileged(container: Mapping[str, Any]) -> bool:
    context = container.get("securityContext")
    return isinstance(context, dict) and context.get("privileged") is True


def _was_so(container: Container) -> bool:
    before = container.before
    return before is not None and _is_privileged(before) and before.get("image") == container.value.get("image")


def _cause(container: Container) -> Cause:
    message = f"{container.field} ({quoted(container.name)}, image {quoted(text(container.value.get('image')))})"
    return Cause(f"{container.field}.securityContext.privileged", message, reason="FieldValueForbidden")
