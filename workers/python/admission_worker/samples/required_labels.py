"""``required-labels``: denies objects without the operator's labels, or with values that do not match.

One denial names all missing and mismatching labels. The policy ignores DELETE and CONNECT, which have no object, and
subresources: a Scale has no labels of its own, and a client cannot label a Node through its status.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from admission_worker import Answer, Cause, Request, SettingsError, deny, pointer
from admission_worker.json_text import quoted
from admission_worker.samples import patterns
from admission_worker.samples.label_syntax import is_key
from admission_worker.samples.sample_worker import worker


class RequiredLabels(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of required-labels.

    Attributes:
        labels: for each required key a regular expression (RE2's) that the whole value must match, or ``""``
            for any value.
    """

    labels: dict[str, str]


def validate(settings: RequiredLabels) -> Iterator[SettingsError]:
    """Reject invalid keys of labels, and invalid regular expressions."""
    for key, pattern in settings.labels.items():
        place = pointer("labels", key)
        if not is_key(key):
            yield SettingsError(place, f"{quoted(key)} cannot be a label's key")
        if not patterns.is_pattern(pattern):
            yield SettingsError(place, f"{quoted(pattern)} is no regular expression (RE2 syntax)")


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
        wanted = f" with a value that matches {quoted(pattern)}" if pattern else ""
        return Cause(field, f"label {quoted(key)} is required{wanted}", reason="FieldValueRequired")
    value = labels[key]
    if isinstance(value, str) and (not pattern or patterns.matches(pattern, value)):
        return None
    return Cause(
        field, f"label {quoted(key)} is {quoted(value)} and must match {quoted(pattern)}", reason="FieldValueInvalid"
    )
