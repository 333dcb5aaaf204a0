"""``default-resources``: adds the operator's requests and limits to containers and init containers that lack them.

"If a limit is specified, but no request, ... the request defaults to the limit", and "a request must be less than or
equal to the limit", says Kubernetes. So the policy omits a default that would make a request exceed a limit, and warns
the user. It ignores containers whose resources an UPDATE does not change (those of Pods and Jobs are immutable), and
Pods with their own resources (``spec.resources``), which their containers share.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from admission_worker import Answer, Request, SettingsError, patch, pointer
from admission_worker.json_text import quoted
from admission_worker.samples import pod_specs
from admission_worker.samples.pod_specs import POD_SPECS, RUNNING, Container
from admission_worker.samples.quantities import quantity
from admission_worker.samples.sample_worker import worker

Resource = Literal["cpu", "memory", "ephemeral-storage"]
"""Resources whose request may be below the limit; not huge pages and extended resources: "you cannot overcommit"."""


class DefaultResources(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of default-resources.

    Attributes:
        requests: the default request of each resource, such as ``{"cpu": "100m", "memory": "128Mi"}``.
        limits: the default limit of each resource; none below its default request.
    """

    requests: dict[Resource, str | int | float] = {}
    limits: dict[Resource, str | int | float] = {}


def validate(settings: DefaultResources) -> Iterator[SettingsError]:
    """Reject invalid and negative quantities, and requests above their limit."""
    values = {}
    for kind, defaults in (("requests", settings.requests), ("limits", settings.limits)):
        for name, written in defaults.items():
            try:
                values[kind, name] = quantity(written)
            except ValueError as error:
                yield SettingsError(pointer(kind, name), str(error))
                continue
            if values[kind, name] < 0:
                yield SettingsError(pointer(kind, name), f"must not be negative, is {_text(written)}")
    for (kind, name), value in values.items():
        if kind == "requests" and value > values.get(("limits", name), value):
            request, limit = _text(settings.requests[name]), _text(settings.limits[name])
            message = f"the default request {request} exceeds the default limit {limit}"
            yield SettingsError(pointer(kind, name), message)


@worker.mutating(
    "default-resources",
    settings=DefaultResources,
    validate=validate,
    inputs=[
        *pod_specs.claims(RUNNING, ("name", "resources")),
        *(pointer("object", *path, "resources") for path in sorted(set(POD_SPECS.values()))),
    ],
    writes=pod_specs.places(RUNNING, ("resources",)),
)
def default_resources(request: Request, settings: DefaultResources) -> Answer | None:
    """Adds requests and limits that containers lack."""
    path = pod_specs.path_of(request)
    if path is None or request.operation not in {"CREATE", "UPDATE"}:
        return None
    if pod_specs.spec_of(request.object, path).get("resources"):
        return None
    operations: list[dict[str, Any]] = []
    warnings: list[str] = []
    for container in pod_specs.containers(request, RUNNING):
        now = container.value.get("resources")
        if container.before is not None and (container.before.get("resources") or {}) == (now or {}):
            continue
        added = _missing(container, now if isinstance(now, dict) else {}, settings, warnings)
        operations.extend(_operations(container, now, added))
    return patch(operations, warnings=warnings)


def _missing(
    container: Container, resources: Mapping[str, Any], settings: DefaultResources, warnings: list[str]
) -> dict[str, dict[str, str]]:
    """The defaults that the container lacks, ``requests`` and ``limits``; one that does not fit becomes a warning."""
    requests, limits = _values(resources, "requests"), _values(resources, "limits")
    added: dict[str, dict[str, str]] = {"requests": {}, "limits": {}}
    for name, written in settings.requests.items():
        if name not in requests and _fits(written, limits.get(name, written)):
            added["requests"][name] = _text(written)
        elif name not in requests:
            warnings.append(
                _warning(container, f"default {name} request {_text(written)} exceeds its limit {_text(limits[name])}")
            )
    for name, written in settings.limits.items():
        if name not in limits and _fits(requests.get(name, written), written):
            added["limits"][name] = _text(written)
        elif name not in limits:
            warnings.append(
                _warning(
                    container, f"default {name} limit {_text(written)} is below its request {_text(requests[name])}"
                )
            )
    return added


def _operations(container: Container, now: Any, added: Mapping[str, dict[str, str]]) -> Iterator[dict[str, Any]]:
    """The JSON Patch that adds them, with their missing parents."""
    wanted = {kind: values for kind, values in added.items() if values}
    if not wanted:
        return
    if not isinstance(now, dict):
        yield {"op": "add", "path": container.pointer("resources"), "value": wanted}
        return
    for kind, values in wanted.items():
        if not isinstance(now.get(kind), dict):
            yield {"op": "add", "path": container.pointer("resources", kind), "value": values}
            continue
        for name, value in values.items():
            yield {"op": "add", "path": container.pointer("resources", kind, name), "value": value}


def _values(resources: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    found = resources.get(kind)
    return found if isinstance(found, dict) else {}


def _fits(request: Any, limit: Any) -> bool:
    """Whether a request does not exceed a limit. An invalid quantity does not fit; the API server will reject it."""
    try:
        return quantity(request) <= quantity(limit)
    except (ValueError, TypeError):
        return False


def _text(written: Any) -> str:
    """A quantity as in JSON: a string as it is, a number with its digits."""
    return written if isinstance(written, str) else quoted(written)


def _warning(container: Container, text: str) -> str:
    return f"{container.field}: {text}: not set"
