"""Cases of what a hook prints for ``--config``, and what shell-operator reads in it.

``valid`` says whether shell-operator takes it; ``parsed``, if it does, what it makes of it: for each binding of each
kind its name, its group, the snapshots it includes, and the webhook that it registers, with defaults. Of the webhook
only the name is unset there before it is registered (``admissionReviewVersions``).
"""

from typing import Any

from gateway.hooks.configuration.model import AdmissionBinding, HookConfiguration
from gateway.hooks.configuration.reader import read_hook_configuration
from tests.conformance.cases import Case, Result, same

KIND = "hook_config"


def recognizes(case: Case) -> bool:
    """Whether this is such a case."""
    return case.has("config", "valid")


def run(case: Case) -> Result:
    """Read it."""
    reading = read_hook_configuration(case.get("config", str).encode(), "hook")
    expected: dict[str, Any] = {"valid": case.get("valid", bool)}
    got: dict[str, Any] = {"valid": reading.configuration is not None}
    if reading.configuration is None:
        got["errors"] = [f"{error.place.path}: {error.message}" for error in reading.errors]
    if expected["valid"]:
        expected["parsed"] = case.get("parsed", dict)
        got["parsed"] = None if reading.configuration is None else _parsed(reading.configuration)
    return Result(
        expected=expected,
        got=got,
        agrees=same(expected["valid"], got["valid"]) and same(_admission(expected), _admission(got)),
    )


def _admission(outcome: dict[str, Any]) -> Any:
    """What of it is about admission, and its version: what conversions come to, this gateway does not say."""
    parsed = outcome.get("parsed") or {}
    return {name: parsed.get(name) for name in ("version", "mutating", "validating")}


def _parsed(configuration: HookConfiguration) -> dict[str, Any]:
    return {
        "version": configuration.version,
        "mutating": [_binding(binding) for binding in configuration.mutating],
        "validating": [_binding(binding) for binding in configuration.validating],
        "conversion": list(configuration.conversions),
    }


def _binding(binding: AdmissionBinding) -> dict[str, Any]:
    return {
        "binding": binding.name,
        "group": binding.group,
        "includeSnapshotsFrom": None if binding.snapshots_from is None else list(binding.snapshots_from),
        "webhook": {"admissionReviewVersions": None, **binding.webhook},
    }
