"""A policy's settings: any JSON object, as bytes that are equal where the settings are.

The worker keeps what it parsed by these bytes, and a cached verdict's key will hold them: hence one form, sorted by
name, without blanks, UTF-8.
"""

import json
import math
from typing import Any, Final

from gateway.policies import field_errors
from gateway.policies.decoding.field import Field
from gateway.policies.decoding.nodes import Broken, Node

NOTHING: Final = b"{}"
"""The settings of a policy that has none."""


def read_settings(field: Field) -> bytes:
    """The settings, or ``{}`` if they are absent or contain what JSON cannot express."""
    if field.node is None or not field.mapping():
        return NOTHING
    before = len(field.findings)
    made = canonical(field)
    return made if len(field.findings) == before else NOTHING


def canonical(field: Field) -> bytes:
    """The settings as canonical JSON; what JSON cannot express is reported."""
    before = len(field.findings)
    value = None if field.node is None else _plain(field.node, [], field)
    if len(field.findings) > before:
        return b"null"
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _plain(node: Node, trail: list[str | int], settings: Field) -> Any:
    """The value without its lines, for json.dumps. The recursion is bounded by nodes.MAX_DEPTH, a frame for each level.

    ``trail`` leads from the settings to the node; it becomes a path only where there is something to report.
    """
    value = node.value
    if isinstance(value, Broken):
        settings.at(trail, node).refuse_broken(value)
    elif isinstance(value, float) and not math.isfinite(value):
        settings.at(trail, node).refuse(field_errors.invalid(value, "JSON has no such number"))
    elif isinstance(value, dict | list):
        plain: dict[str | int, Any] = {}
        for step, child in value.items() if isinstance(value, dict) else enumerate(value):
            trail.append(step)
            plain[step] = _plain(child, trail, settings)
            trail.pop()
        return plain if isinstance(value, dict) else list(plain.values())
    return value
