"""The probe policies of the conformance kit, served only with ``--conformance``.

Every SDK has the same ones; workers/README.md specifies them. Do not use them in production: one floods, one raises,
one returns its document.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final, Literal

import msgspec

from admission_worker.answers import (
    NO_STORE,
    Answer,
    CacheHint,
    Cause,
    Details,
    allow,
    deny,
    fail,
    merge,
    mutated,
    patch,
)
from admission_worker.claims import EVERYTHING
from admission_worker.errors import SettingsError, SettingsWarning
from admission_worker.policies import Function, Phase, Policy, style_of
from admission_worker.request import Request
from admission_worker.settings import NoSettings, SettingsType, Validate
from admission_worker.tracing import current

REMEMBERED: Final = 1000
"""The number of tokens of cancelled sleeps that are kept, the latest."""

_CAUSE: Final = Cause("spec.probe", "a cause", "FieldValueInvalid")

_DETAILS: Final = Details(
    name="probe", group="probes.example.com", kind="Probe", uid="probe-uid", retry_after_seconds=7
)

_PATCH: Final = ({"op": "add", "path": "/metadata/annotations", "value": {"probe": "patched"}},)

Arm = Literal["allow", "nothing", "deny", "deny-plainly", "patch", "merge", "mutated", "fail"]


class AnswerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Settings of probe-answer."""

    arm: Arm
    warnings: tuple[str, ...] = ()
    audit_annotations: dict[str, str] = {}
    cache: Literal["no-store"] | int | float | None = None

    def beside(self) -> dict[str, Any]:
        """The fields that every verdict can have."""
        hint: CacheHint | None = NO_STORE if self.cache == "no-store" else None
        if isinstance(self.cache, int | float):
            hint = timedelta(seconds=self.cache)
        return {"warnings": self.warnings, "audit_annotations": self.audit_annotations, "cache": hint}


class Sleep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of probe-sleep."""

    seconds: int | float
    token: str


class Cancelled(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of probe-cancelled."""

    token: str


class Flood(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of probe-flood."""

    bytes: int


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings of probe-settings."""

    odd: int
    name: str | msgspec.UnsetType = msgspec.UNSET
    deprecated: bool | msgspec.UnsetType = msgspec.UNSET


def probe_policies() -> dict[str, Policy]:
    """New probe policies by name, with their own memory of tokens."""
    sleeps = _Sleeps()
    validating, mutating = Phase.VALIDATING, Phase.MUTATING
    made = (
        _probe("probe-answer", mutating, _answer, settings=AnswerSettings),
        _probe("probe-misuse", validating, _misuse),
        _probe("probe-echo", validating, _echo, inputs=EVERYTHING),
        _probe("probe-sleep", validating, sleeps.sleep, settings=Sleep, inputs=()),
        _probe("probe-cancelled", validating, sleeps.cancelled, settings=Cancelled, inputs=()),
        _probe("probe-panic", validating, _panic, inputs=()),
        _probe("probe-flood", validating, _flood, settings=Flood, inputs=()),
        _probe("probe-settings", validating, _accepts, settings=Settings, validate=_validate, inputs=()),
        _probe("probe-label", mutating, _label, inputs=("/object/metadata/labels",), writes=("/metadata/labels",)),
        _probe("probe-version", validating, _passes, inputs=(), version="probe-7"),
    )
    return {policy.name: policy for policy in made}


def _probe(
    name: str,
    phase: Phase,
    function: Function,
    *,
    settings: Any = NoSettings,
    validate: Validate | None = None,
    **fields: Any,
) -> Policy:
    kind = SettingsType(shape=settings, validate=validate)
    style = style_of(function, blocking=False)
    description = "A probe of the conformance kit."
    return Policy(
        name=name, phase=phase, function=function, style=style, settings=kind, description=description, **fields
    )


class _Sleeps:
    """probe-sleep, and which of its calls were cancelled."""

    def __init__(self) -> None:
        self._cancelled: OrderedDict[str, None] = OrderedDict()

    async def sleep(self, _: Request, settings: Sleep) -> Answer | None:
        """Waits as a coroutine waits."""
        try:
            await asyncio.sleep(settings.seconds)
        except asyncio.CancelledError:
            self._cancelled[settings.token] = None
            while len(self._cancelled) > REMEMBERED:
                self._cancelled.popitem(last=False)
            raise
        return None

    def cancelled(self, _: Request, settings: Cancelled) -> Answer | None:
        """Whether the sleep of this token was cancelled."""
        return allow(audit_annotations={"cancelled": "true" if settings.token in self._cancelled else "false"})


def _answer(request: Request, settings: AnswerSettings) -> Answer | None:
    beside = settings.beside()
    made: dict[Arm, Callable[[], Answer | None]] = {
        "allow": lambda: allow(**beside),
        "nothing": lambda: None,
        "deny": lambda: deny("denied by the probe", code=409, causes=[_CAUSE], details=_DETAILS, **beside),
        "deny-plainly": lambda: deny("denied", **beside),
        "patch": lambda: patch(_PATCH, **beside),
        "merge": lambda: merge({"metadata": {"annotations": {"probe": "merged"}}}, **beside),
        "mutated": lambda: _mutated(request, beside),
        "fail": lambda: fail("failed by the probe"),
    }
    return made[settings.arm]()


def _mutated(request: Request, beside: Mapping[str, Any]) -> Answer:
    whole = request.object
    if whole is None:
        return fail("there is no object to mutate")
    metadata = whole.setdefault("metadata", {})
    metadata["annotations"] = (metadata.get("annotations") or {}) | {"probe": "mutated"}
    return mutated(whole, **beside)


def _misuse(_: Request) -> Answer | None:
    return patch(_PATCH)


def _echo(request: Request) -> Answer | None:
    annotations = {"uid": request.uid, "traceparent": current().traceparent}
    return deny(request.raw.decode(), code=422, audit_annotations=annotations)


def _panic(_: Request) -> Answer | None:
    message = "a secret that must not travel"
    raise RuntimeError(message)


def _flood(_: Request, settings: Flood) -> Answer | None:
    return deny("x" * settings.bytes)


def _validate(settings: Settings) -> Iterator[SettingsError | SettingsWarning]:
    if settings.odd % 2 == 0:
        yield SettingsError("/odd", f"must be odd, is {settings.odd}")
    if settings.deprecated is not msgspec.UNSET:
        yield SettingsWarning("deprecated goes away")


def _accepts(_: Request, __: Settings) -> Answer | None:
    return None


def _passes(_: Request) -> Answer | None:
    return None


def _label(request: Request) -> Answer | None:
    if request.object is None:
        return None
    metadata = request.object.get("metadata")
    if not isinstance(metadata, dict):
        return patch([{"op": "add", "path": "/metadata", "value": {"labels": {"probe": "yes"}}}])
    labels = metadata.get("labels")
    if not isinstance(labels, dict):
        return patch([{"op": "add", "path": "/metadata/labels", "value": {"probe": "yes"}}])
    return None if "probe" in labels else patch([{"op": "add", "path": "/metadata/labels/probe", "value": "yes"}])
