"""``required-labels``: every object has the labels that the operator wants, with values that match.

All missing and mismatching labels are named at once. Not judged are a DELETE and a CONNECT, which bring no object, and
subresources: a Scale has no labels of its own, and nobody can label a Node through its status.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from admission_worker import Answer, Cause, Request, SettingsError, deny, pointer
from admission_worker.samples.label_syntax import is_key
from admission_worker.samples.sample_worker import worker


class RequiredLabels(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of required-labels.

    Attributes:
        labels: for each required key a regular expression (Python's ``re``) that the whole value must match, or ``""``
            for any value.
    """

    labels: dict[str, str]


def validate(settings: RequiredLabels) -> Iterator[SettingsError]:
    """What cannot be a label's key, and what is no regular expression."""
    for key, pattern in settings.labels.items():
        place = pointer("labels", key)
        if not is_key(key):
            yield SettingsError(place, f"{key!r} cannot be a label's key")
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            yield SettingsError(place, f"{pattern!r} is no regular expression: {error}")


@worker.validating("required-labels", settings=RequiredLabels, validate=validate, inputs=["/object/metadata/labels"])
def required_labels(request: Request, settings: RequiredLabels) -> Answer | None:
    """Denies objects that lack a required label, or whose label does not match."""
    if request.object is None or request.operation not in {"CREATE", "UPDATE"} or request.sub_resource:
        return None
    metadata = request.object.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    found = labels if isinstance(labels, dict) else {}
    causes = [cause for key, pattern in settings.labels.items() if (cause := _wrong(key, pattern, found))]
    if not causes:
        return None
    return deny("; ".join(cause.message for cause in causes), causes=causes)


def _wrong(key: str, pattern: str, labels: dict[str, Any]) -> Cause | None:
    field = f"metadata.labels[{key}]"
    if key not in labels:
        wanted = f" with a value that matches {pattern!r}" if pattern else ""
        return Cause(field, f"label {key!r} is required{wanted}", reason="FieldValueRequired")
    value = labels[key]
    if isinstance(value, str) and (not pattern or re.fullmatch(pattern, value)):
        return None
    return Cause(field, f"label {key!r} is {value!r} and must match {pattern!r}", reason="FieldValueInvalid")
