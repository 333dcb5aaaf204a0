"""``image-registry``: rewrites images of one registry to another, such as a mirror.

An image is written ``[REGISTRY[:PORT]/]PATH[:TAG][@DIGEST]``. Short names are Docker's: the first component is a
registry only if it has a ``.`` or a ``:`` or is ``localhost`` (github.com/distribution/reference, normalize.go);
otherwise it is ``docker.io``, where a name of one component is in ``library/``. So ``nginx`` is
``docker.io/library/nginx``, and ``user/app`` is ``docker.io/user/app``. Tag and digest stay as they are.

The policy does not change an image that is in the new registry, so a second run changes nothing. Nor does it change an
image that an UPDATE leaves as it was: a change of a label should not restart a running Pod.
"""

import re
from collections.abc import Iterator

import msgspec

from admission_worker import Answer, Request, SettingsError, patch
from admission_worker.json_text import quoted
from admission_worker.samples import pod_specs
from admission_worker.samples.pod_specs import ALL, text
from admission_worker.samples.sample_worker import worker

DOCKER_HUB = "docker.io"
OLD_DOCKER_HUB = "index.docker.io"
"""The reference grammar's other name for the same registry."""

_PLACE = re.compile(r"[A-Za-z0-9.-]+(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*")


class ImageRegistry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of image-registry.

    Attributes:
        source: ``from``: a registry such as ``docker.io``, or a path in one such as ``registry.example.com/team``.
        target: ``to``: the registry, with or without a path, that takes its place.
    """

    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")


def validate(settings: ImageRegistry) -> Iterator[SettingsError]:
    """Reject invalid registries, and settings that never rewrite an image."""
    sound = True
    for name, place in (("from", settings.source), ("to", settings.target)):
        if not _PLACE.fullmatch(place) or not _is_registry(place.partition("/")[0]):
            sound = False
            wanted = "a registry with or without a path, such as docker.io or mirror.example.com/hub"
            yield SettingsError(f"/{name}", f"must be {wanted}, is {quoted(place)}")
    if settings.source.partition("/")[0] == OLD_DOCKER_HUB:
        yield SettingsError("/from", f"{OLD_DOCKER_HUB} is another name of {DOCKER_HUB}: write {DOCKER_HUB}")
    if sound and _rest(settings.source, settings.target) is not None:
        source, target = quoted(settings.source), quoted(settings.target)
        message = f"{source} lies in {target}, where images stay: nothing would ever be rewritten"
        yield SettingsError("/from", message)


@worker.mutating(
    "image-registry",
    settings=ImageRegistry,
    validate=validate,
    inputs=pod_specs.claims(ALL, ("name", "image")),
    writes=pod_specs.places(ALL, ("image",)),
)
def image_registry(request: Request, settings: ImageRegistry) -> Answer | None:
    """Rewrites images of one registry to another, in Pods and in the templates of what creates Pods."""
    if request.operation not in {"CREATE", "UPDATE"}:
        return None
    return patch(
        {"op": "replace", "path": container.pointer("image"), "value": moved}
        for container in pod_specs.containers(request, ALL)
        if (image := text(container.value.get("image")))
        and (container.before is None or container.before.get("image") != image)
        and (moved := rewritten(image, settings.source, settings.target)) is not None
    )


def rewritten(image: str, source: str, target: str) -> str | None:
    """The rewritten image; None: it stays.

    Args:
        image: as it is written in a container.
        source: the place that is left, without a slash at its end.
        target: the place that is taken.
    """
    whole = normalized(image)
    # Compare the written form too: an image that was rewritten to docker.io/a is normalized to docker.io/library/a.
    if _rest(whole, target) is not None or _rest(image, target) is not None:
        return None
    rest = _rest(whole, source)
    return None if rest is None else f"{target}{rest}"


def normalized(image: str) -> str:
    """The image with its registry: ``nginx:1`` is ``docker.io/library/nginx:1``."""
    first, slash, path = image.partition("/")
    if not slash or not _is_registry(first):
        first, path = DOCKER_HUB, image
    elif first == OLD_DOCKER_HUB:
        first = DOCKER_HUB
    if first == DOCKER_HUB and "/" not in path:
        path = f"library/{path}"
    return f"{first}/{path}"


def _is_registry(component: str) -> bool:
    return "." in component or ":" in component or component == "localhost" or component != component.lower()


def _rest(whole: str, place: str) -> str | None:
    """The rest of a normalized image after a place: a path, or a repository's tag or digest; None: it is elsewhere."""
    if not whole.startswith(place):
        return None
    rest = whole[len(place) :]
    ends = "/:@" if "/" in place else "/"  # after a registry without a path, a colon begins its port
    return rest if rest == "" or rest[0] in ends else None
