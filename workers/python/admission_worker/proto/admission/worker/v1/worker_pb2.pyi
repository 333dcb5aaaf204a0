import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Phase(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PHASE_UNSPECIFIED: _ClassVar[Phase]
    PHASE_MUTATING: _ClassVar[Phase]
    PHASE_VALIDATING: _ClassVar[Phase]

class FailureReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FAILURE_REASON_UNSPECIFIED: _ClassVar[FailureReason]
    FAILURE_REASON_INVALID_SETTINGS: _ClassVar[FailureReason]
    FAILURE_REASON_UNKNOWN_POLICY: _ClassVar[FailureReason]
PHASE_UNSPECIFIED: Phase
PHASE_MUTATING: Phase
PHASE_VALIDATING: Phase
FAILURE_REASON_UNSPECIFIED: FailureReason
FAILURE_REASON_INVALID_SETTINGS: FailureReason
FAILURE_REASON_UNKNOWN_POLICY: FailureReason

class DescribeRequest(_message.Message):
    __slots__ = ("gateway_version",)
    GATEWAY_VERSION_FIELD_NUMBER: _ClassVar[int]
    gateway_version: str
    def __init__(self, gateway_version: _Optional[str] = ...) -> None: ...

class DescribeResponse(_message.Message):
    __slots__ = ("worker", "version", "policies")
    WORKER_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    worker: str
    version: str
    policies: _containers.RepeatedCompositeFieldContainer[PolicyDescription]
    def __init__(self, worker: _Optional[str] = ..., version: _Optional[str] = ..., policies: _Optional[_Iterable[_Union[PolicyDescription, _Mapping]]] = ...) -> None: ...

class PolicyDescription(_message.Message):
    __slots__ = ("name", "version", "phases", "inputs", "writes", "settings_schema", "description")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PHASES_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    WRITES_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    phases: _containers.RepeatedScalarFieldContainer[Phase]
    inputs: Claim
    writes: Claim
    settings_schema: bytes
    description: str
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., phases: _Optional[_Iterable[_Union[Phase, str]]] = ..., inputs: _Optional[_Union[Claim, _Mapping]] = ..., writes: _Optional[_Union[Claim, _Mapping]] = ..., settings_schema: _Optional[bytes] = ..., description: _Optional[str] = ...) -> None: ...

class Claim(_message.Message):
    __slots__ = ("everything", "pointers")
    class Everything(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    class Pointers(_message.Message):
        __slots__ = ("pointers",)
        POINTERS_FIELD_NUMBER: _ClassVar[int]
        pointers: _containers.RepeatedScalarFieldContainer[str]
        def __init__(self, pointers: _Optional[_Iterable[str]] = ...) -> None: ...
    EVERYTHING_FIELD_NUMBER: _ClassVar[int]
    POINTERS_FIELD_NUMBER: _ClassVar[int]
    everything: Claim.Everything
    pointers: Claim.Pointers
    def __init__(self, everything: _Optional[_Union[Claim.Everything, _Mapping]] = ..., pointers: _Optional[_Union[Claim.Pointers, _Mapping]] = ...) -> None: ...

class ValidateSettingsRequest(_message.Message):
    __slots__ = ("policy", "settings")
    POLICY_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    policy: str
    settings: bytes
    def __init__(self, policy: _Optional[str] = ..., settings: _Optional[bytes] = ...) -> None: ...

class ValidateSettingsResponse(_message.Message):
    __slots__ = ("errors", "warnings")
    ERRORS_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    errors: _containers.RepeatedCompositeFieldContainer[SettingsError]
    warnings: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, errors: _Optional[_Iterable[_Union[SettingsError, _Mapping]]] = ..., warnings: _Optional[_Iterable[str]] = ...) -> None: ...

class SettingsError(_message.Message):
    __slots__ = ("pointer", "message")
    POINTER_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    pointer: str
    message: str
    def __init__(self, pointer: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class ReviewRequest(_message.Message):
    __slots__ = ("call",)
    CALL_FIELD_NUMBER: _ClassVar[int]
    call: PolicyCall
    def __init__(self, call: _Optional[_Union[PolicyCall, _Mapping]] = ...) -> None: ...

class ReviewResponse(_message.Message):
    __slots__ = ("outcome",)
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    outcome: Outcome
    def __init__(self, outcome: _Optional[_Union[Outcome, _Mapping]] = ...) -> None: ...

class PolicyCall(_message.Message):
    __slots__ = ("policy", "phase", "settings", "document", "document_index", "uid", "traceparent", "tracestate", "timeout")
    POLICY_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_FIELD_NUMBER: _ClassVar[int]
    DOCUMENT_INDEX_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    TRACEPARENT_FIELD_NUMBER: _ClassVar[int]
    TRACESTATE_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    policy: str
    phase: Phase
    settings: bytes
    document: bytes
    document_index: int
    uid: str
    traceparent: str
    tracestate: str
    timeout: _duration_pb2.Duration
    def __init__(self, policy: _Optional[str] = ..., phase: _Optional[_Union[Phase, str]] = ..., settings: _Optional[bytes] = ..., document: _Optional[bytes] = ..., document_index: _Optional[int] = ..., uid: _Optional[str] = ..., traceparent: _Optional[str] = ..., tracestate: _Optional[str] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class Outcome(_message.Message):
    __slots__ = ("allow", "deny", "failure", "warnings", "audit_annotations", "cache", "version")
    class AuditAnnotationsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    ALLOW_FIELD_NUMBER: _ClassVar[int]
    DENY_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    AUDIT_ANNOTATIONS_FIELD_NUMBER: _ClassVar[int]
    CACHE_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    allow: Allow
    deny: Deny
    failure: Failure
    warnings: _containers.RepeatedScalarFieldContainer[str]
    audit_annotations: _containers.ScalarMap[str, str]
    cache: CacheHint
    version: str
    def __init__(self, allow: _Optional[_Union[Allow, _Mapping]] = ..., deny: _Optional[_Union[Deny, _Mapping]] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ..., warnings: _Optional[_Iterable[str]] = ..., audit_annotations: _Optional[_Mapping[str, str]] = ..., cache: _Optional[_Union[CacheHint, _Mapping]] = ..., version: _Optional[str] = ...) -> None: ...

class Allow(_message.Message):
    __slots__ = ("json_patch", "merge_patch", "object")
    JSON_PATCH_FIELD_NUMBER: _ClassVar[int]
    MERGE_PATCH_FIELD_NUMBER: _ClassVar[int]
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    json_patch: bytes
    merge_patch: bytes
    object: bytes
    def __init__(self, json_patch: _Optional[bytes] = ..., merge_patch: _Optional[bytes] = ..., object: _Optional[bytes] = ...) -> None: ...

class Deny(_message.Message):
    __slots__ = ("code", "message", "reason", "details")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    code: int
    message: str
    reason: str
    details: StatusDetails
    def __init__(self, code: _Optional[int] = ..., message: _Optional[str] = ..., reason: _Optional[str] = ..., details: _Optional[_Union[StatusDetails, _Mapping]] = ...) -> None: ...

class StatusDetails(_message.Message):
    __slots__ = ("name", "group", "kind", "uid", "causes", "retry_after_seconds")
    NAME_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    CAUSES_FIELD_NUMBER: _ClassVar[int]
    RETRY_AFTER_SECONDS_FIELD_NUMBER: _ClassVar[int]
    name: str
    group: str
    kind: str
    uid: str
    causes: _containers.RepeatedCompositeFieldContainer[StatusCause]
    retry_after_seconds: int
    def __init__(self, name: _Optional[str] = ..., group: _Optional[str] = ..., kind: _Optional[str] = ..., uid: _Optional[str] = ..., causes: _Optional[_Iterable[_Union[StatusCause, _Mapping]]] = ..., retry_after_seconds: _Optional[int] = ...) -> None: ...

class StatusCause(_message.Message):
    __slots__ = ("reason", "message", "field")
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    reason: str
    message: str
    field: str
    def __init__(self, reason: _Optional[str] = ..., message: _Optional[str] = ..., field: _Optional[str] = ...) -> None: ...

class Failure(_message.Message):
    __slots__ = ("message", "reason")
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    message: str
    reason: FailureReason
    def __init__(self, message: _Optional[str] = ..., reason: _Optional[_Union[FailureReason, str]] = ...) -> None: ...

class CacheHint(_message.Message):
    __slots__ = ("no_store", "ttl")
    class NoStore(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    NO_STORE_FIELD_NUMBER: _ClassVar[int]
    TTL_FIELD_NUMBER: _ClassVar[int]
    no_store: CacheHint.NoStore
    ttl: _duration_pb2.Duration
    def __init__(self, no_store: _Optional[_Union[CacheHint.NoStore, _Mapping]] = ..., ttl: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class ReviewStreamRequest(_message.Message):
    __slots__ = ("documents", "items")
    class RequestItem(_message.Message):
        __slots__ = ("id", "call", "cancel")
        ID_FIELD_NUMBER: _ClassVar[int]
        CALL_FIELD_NUMBER: _ClassVar[int]
        CANCEL_FIELD_NUMBER: _ClassVar[int]
        id: int
        call: PolicyCall
        cancel: ReviewStreamRequest.Cancel
        def __init__(self, id: _Optional[int] = ..., call: _Optional[_Union[PolicyCall, _Mapping]] = ..., cancel: _Optional[_Union[ReviewStreamRequest.Cancel, _Mapping]] = ...) -> None: ...
    class Cancel(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    DOCUMENTS_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    documents: _containers.RepeatedScalarFieldContainer[bytes]
    items: _containers.RepeatedCompositeFieldContainer[ReviewStreamRequest.RequestItem]
    def __init__(self, documents: _Optional[_Iterable[bytes]] = ..., items: _Optional[_Iterable[_Union[ReviewStreamRequest.RequestItem, _Mapping]]] = ...) -> None: ...

class ReviewStreamResponse(_message.Message):
    __slots__ = ("items",)
    class ResponseItem(_message.Message):
        __slots__ = ("id", "outcome")
        ID_FIELD_NUMBER: _ClassVar[int]
        OUTCOME_FIELD_NUMBER: _ClassVar[int]
        id: int
        outcome: Outcome
        def __init__(self, id: _Optional[int] = ..., outcome: _Optional[_Union[Outcome, _Mapping]] = ...) -> None: ...
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[ReviewStreamResponse.ResponseItem]
    def __init__(self, items: _Optional[_Iterable[_Union[ReviewStreamResponse.ResponseItem, _Mapping]]] = ...) -> None: ...
