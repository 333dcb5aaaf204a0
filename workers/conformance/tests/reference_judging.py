"""The tests' reference worker, written from the contract alone: its policies and their description.

``faults`` derives workers from it that break one rule each. It leans on no SDK: the kit is what SDKs are held to.
"""

import asyncio
import json
from collections import deque

import msgspec

from worker_conformance.proto.admission.worker.v1 import worker_pb2

MUTATING, VALIDATING = worker_pb2.PHASE_MUTATING, worker_pb2.PHASE_VALIDATING
INVALID, UNKNOWN = worker_pb2.FAILURE_REASON_INVALID_SETTINGS, worker_pb2.FAILURE_REASON_UNKNOWN_POLICY
LIMIT = 41_048_576

POLICIES = {
    "probe-answer": (MUTATING, None, None),
    "probe-misuse": (VALIDATING, None, None),
    "probe-echo": (VALIDATING, True, None),
    "probe-sleep": (VALIDATING, [], None),
    "probe-cancelled": (VALIDATING, [], None),
    "probe-panic": (VALIDATING, [], None),
    "probe-flood": (VALIDATING, [], None),
    "probe-settings": (VALIDATING, [], None),
    "probe-label": (MUTATING, ["/object/metadata/labels"], ["/metadata/labels"]),
    "probe-version": (VALIDATING, [], None),
    "plain": (VALIDATING, ["/object/metadata/labels"], None),
}
"""Phase, inputs (None: unset; True: everything), writes."""

MEMBERS = {
    "probe-answer": {"arm": str, "warnings": list, "auditAnnotations": dict, "cache": (str, int, float)},
    "probe-sleep": {"seconds": (int, float), "token": str},
    "probe-cancelled": {"token": str},
    "probe-flood": {"bytes": int},
    "probe-settings": {"odd": int, "name": str, "deprecated": bool},
}
REQUIRED = {"probe-answer": ["arm"], "probe-settings": ["odd"], "probe-flood": ["bytes"]}


class Judging:
    """Its policies."""

    name, version = "reference", "1.2.3"

    def __init__(self):
        self.cancelled = deque(maxlen=1000)
        self.in_flight, self.room = 0, 4096

    # ------------------------------------------------------------------------------------ Describe

    def describe(self, request):
        described = worker_pb2.DescribeResponse(worker=self.name, version=self.version)
        for name, (phase, inputs, writes) in POLICIES.items():
            policy = described.policies.add(name=name, phases=[phase], description="A policy.")
            policy.settings_schema = b'{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object"}'
            policy.version = "probe-7" if name == "probe-version" else ""
            for claim, claimed in ((policy.inputs, inputs), (policy.writes, writes)):
                if claimed is True:
                    claim.everything.SetInParent()
                elif claimed is not None:
                    claim.pointers.pointers.extend(claimed)
                    claim.pointers.SetInParent()
        return described

    # ------------------------------------------------------------------------------------ settings

    def setting_errors(self, policy, text):
        """Errors as (pointer, message), and warnings."""
        if policy not in POLICIES:
            return [("", f"there is no policy {policy}")], []
        try:
            settings = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return [("", f"no JSON: {error}")], []
        if not isinstance(settings, dict):
            return [("", "must be an object")], []
        members, errors = MEMBERS.get(policy, {}), []
        for name, value in settings.items():
            kind = members.get(name)
            if kind is None:
                errors.append((f"/{name}", "unknown member"))
            elif not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
                errors.append((f"/{name}", f"must be {kind}"))
        errors += [(f"/{name}", "is required") for name in REQUIRED.get(policy, ()) if name not in settings]
        if policy == "probe-settings" and not errors and settings["odd"] % 2 == 0:
            errors.append(("/odd", f"must be odd, is {settings['odd']}"))
        warned = policy == "probe-settings" and "deprecated" in settings
        return errors, ["deprecated goes away"] if warned and not errors else []

    def validate(self, request):
        errors, warnings = self.setting_errors(request.policy, request.settings)
        found = worker_pb2.ValidateSettingsResponse(warnings=warnings)
        for pointer, message in errors:
            found.errors.add(pointer=pointer, message=message)
        return found

    # --------------------------------------------------------------------------------------- calls

    async def judge(self, call, document, trace=""):
        """The outcome of a call; ``document`` None: there is none."""
        version = "probe-7" if call.policy == "probe-version" else self.version
        outcome = await self.judged(call, document, trace)
        outcome.version = version
        if outcome.ByteSize() > LIMIT - 64:
            outcome = failure(f"the answer has {outcome.ByteSize()} bytes, the limit is {LIMIT}")
        return outcome

    async def judged(self, call, document, trace):
        if call.policy not in POLICIES or call.phase != POLICIES[call.policy][0]:
            return failure(f"no policy {call.policy!r} for phase {call.phase}", UNKNOWN)
        errors, _ = self.setting_errors(call.policy, call.settings)
        if errors:
            return failure(f"settings of {call.policy}: {errors}", INVALID)
        try:
            if document is None or not isinstance(msgspec.json.decode(document, type=dict[str, msgspec.Raw]), dict):
                return failure(f"{call.policy}: no document")
            for part in msgspec.json.decode(document, type=dict[str, msgspec.Raw]).values():
                bytes(part).decode()
        except (ValueError, RecursionError) as error:
            return failure(f"{call.policy}: unreadable document: {error}")
        method = getattr(self, call.policy.replace("-", "_"))
        return await method(call, document, msgspec.json.decode(call.settings), trace)

    async def plain(self, call, document, settings, trace):
        return worker_pb2.Outcome(allow=worker_pb2.Allow())

    async def probe_answer(self, call, document, settings, trace):
        outcome = answer(settings["arm"], document)
        if settings["arm"] != "fail":
            outcome.warnings.extend(settings.get("warnings", []))
            outcome.audit_annotations.update(settings.get("auditAnnotations", {}))
            match settings.get("cache"):
                case "no-store":
                    outcome.cache.no_store.SetInParent()
                case int() | float() as seconds:
                    outcome.cache.ttl.FromNanoseconds(int(seconds * 1e9))
        return outcome

    async def probe_misuse(self, call, document, settings, trace):
        return failure("policy probe-misuse returned a change")

    async def probe_echo(self, call, document, settings, trace):
        outcome = worker_pb2.Outcome(deny=worker_pb2.Deny(code=422, message=document.decode()))
        outcome.audit_annotations.update({"uid": call.uid, "traceparent": trace if len(trace) == 55 else ""})
        return outcome

    async def probe_sleep(self, call, document, settings, trace):
        try:
            await asyncio.sleep(settings.get("seconds", 0))
        except asyncio.CancelledError:
            self.cancelled.append(settings.get("token"))
            raise
        return worker_pb2.Outcome(allow=worker_pb2.Allow())

    async def probe_cancelled(self, call, document, settings, trace):
        outcome = worker_pb2.Outcome(allow=worker_pb2.Allow())
        outcome.audit_annotations["cancelled"] = "true" if settings.get("token") in self.cancelled else "false"
        return outcome

    async def probe_panic(self, call, document, settings, trace):
        self.log("error", "RuntimeError: a secret that must not travel", uid=call.uid, policy=call.policy)
        return failure("policy probe-panic raised RuntimeError")

    async def probe_flood(self, call, document, settings, trace):
        return worker_pb2.Outcome(deny=worker_pb2.Deny(message="x" * settings["bytes"]))

    async def probe_settings(self, call, document, settings, trace):
        return worker_pb2.Outcome(allow=worker_pb2.Allow())

    async def probe_version(self, call, document, settings, trace):
        return worker_pb2.Outcome(allow=worker_pb2.Allow())

    async def probe_label(self, call, document, settings, trace):
        outcome = worker_pb2.Outcome(allow=worker_pb2.Allow())
        labels = msgspec.json.decode(document).get("object", {}).get("metadata", {}).get("labels", {})
        if "probe" not in labels:
            operation = {"op": "add", "path": "/metadata/labels/probe", "value": "yes"}
            outcome.allow.json_patch = json.dumps([operation]).encode()
        return outcome

    def log(self, level, message, **fields):
        """Log an event; only the tests' command writes it."""


def failure(message, reason=worker_pb2.FAILURE_REASON_UNSPECIFIED):
    return worker_pb2.Outcome(failure=worker_pb2.Failure(message=message, reason=reason))


def answer(arm, document):
    """probe-answer's arms."""
    made = worker_pb2.Outcome(allow=worker_pb2.Allow())
    match arm:
        case "deny":
            cause = worker_pb2.StatusCause(reason="FieldValueInvalid", message="a cause", field="spec.probe")
            details = worker_pb2.StatusDetails(
                name="probe", group="probes.example.com", kind="Probe", uid="probe-uid", causes=[cause]
            )
            details.retry_after_seconds = 7
            denied = worker_pb2.Deny(code=409, message="denied by the probe", reason="Conflict", details=details)
            made.deny.CopyFrom(denied)
        case "deny-plainly":
            made.deny.message = "denied"
        case "patch":
            operation = {"op": "add", "path": "/metadata/annotations", "value": {"probe": "patched"}}
            made.allow.json_patch = json.dumps([operation]).encode()
        case "merge":
            made.allow.merge_patch = b'{"metadata":{"annotations":{"probe":"merged"}}}'
        case "mutated":
            made.allow.object = annotated(document)
        case "fail":
            return failure("failed by the probe")
    return made


def annotated(document):
    """The object with one annotation more; the bytes of its other members stay."""
    found = msgspec.json.decode(document, type=dict[str, msgspec.Raw])["object"]
    members = msgspec.json.decode(found, type=dict[str, msgspec.Raw])
    metadata = msgspec.json.decode(members.get("metadata", msgspec.Raw(b"{}")), type=dict[str, msgspec.Raw])
    metadata["annotations"] = msgspec.Raw(b'{"probe":"mutated"}')
    return msgspec.json.encode(members | {"metadata": metadata})
