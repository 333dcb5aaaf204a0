"""``default-labels``: adds labels that an object lacks, and never overwrites one.

It ignores subresources, whose objects have no labels of their own or cannot change them.
"""

from collections.abc import Iterator

import msgspec

from admission_worker import Answer, Request, SettingsError, patch, pointer
from admission_worker.json_text import quoted
from admission_worker.samples.label_syntax import is_key, is_value
from admission_worker.samples.sample_worker import worker


class DefaultLabels(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of default-labels.

    Attributes:
        labels: the value of each label that is added where it is missing.
    """

    labels: dict[str, str]


def validate(settings: DefaultLabels) -> Iterator[SettingsError]:
    """Reject invalid keys and values of labels."""
    for key, value in settings.labels.items():
        if not is_key(key):
            yield SettingsError(pointer("labels", key), f"{quoted(key)} cannot be a label's key")
        if not is_value(value):
            yield SettingsError(pointer("labels", key), f"{quoted(value)} cannot be a label's value")


@worker.mutating(
    "default-labels",
    settings=DefaultLabels,
    validate=validate,
    inputs=["/object/metadata/labels"],
    writes=["/metadata/labels"],
)
def default_labels(request: Request, settings: DefaultLabels) -> Answer | None:
    """Adds labels that an object lacks."""
    if request.object is None or request.operation not in {"CREATE", "UPDATE"} or request.sub_resource:
        return None
    metadata = request.object.get("metadata")
    if not isinstance(metadata, dict):
        return patch(
            [{"op": "add", "path": "/metadata", "value": {"labels": settings.labels}}] if settings.labels else []
        )
    labels = metadata.get("labels")
    if not isinstance(labels, dict):
        return patch([{"op": "add", "path": "/metadata/labels", "value": settings.labels}] if settings.labels else [])
    return patch(
        {"op": "add", "path": pointer("metadata", "labels", key), "value": value}
        for key, value in settings.labels.items()
        if key not in labels
    )
