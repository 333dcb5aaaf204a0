from gateway.transports.proto.admission.worker.v1 import worker_pb2 as _worker_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Request(_message.Message):
    __slots__ = ("call", "validate_settings", "once")
    CALL_FIELD_NUMBER: _ClassVar[int]
    VALIDATE_SETTINGS_FIELD_NUMBER: _ClassVar[int]
    ONCE_FIELD_NUMBER: _ClassVar[int]
    call: _worker_pb2.PolicyCall
    validate_settings: _worker_pb2.ValidateSettingsRequest
    once: bool
    def __init__(self, call: _Optional[_Union[_worker_pb2.PolicyCall, _Mapping]] = ..., validate_settings: _Optional[_Union[_worker_pb2.ValidateSettingsRequest, _Mapping]] = ..., once: _Optional[bool] = ...) -> None: ...

class Replies(_message.Message):
    __slots__ = ("replies", "at")
    REPLIES_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    replies: _containers.RepeatedCompositeFieldContainer[Reply]
    at: int
    def __init__(self, replies: _Optional[_Iterable[_Union[Reply, _Mapping]]] = ..., at: _Optional[int] = ...) -> None: ...

class Reply(_message.Message):
    __slots__ = ("id", "deadline", "verdict", "settings", "error")
    ID_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    id: bytes
    deadline: int
    verdict: _worker_pb2.Outcome
    settings: _worker_pb2.ValidateSettingsResponse
    error: Error
    def __init__(self, id: _Optional[bytes] = ..., deadline: _Optional[int] = ..., verdict: _Optional[_Union[_worker_pb2.Outcome, _Mapping]] = ..., settings: _Optional[_Union[_worker_pb2.ValidateSettingsResponse, _Mapping]] = ..., error: _Optional[_Union[Error, _Mapping]] = ...) -> None: ...

class Error(_message.Message):
    __slots__ = ("reason", "message")
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    reason: str
    message: str
    def __init__(self, reason: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...

class Presence(_message.Message):
    __slots__ = ("description", "at", "lane", "in_flight", "capacity", "answered")
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    LANE_FIELD_NUMBER: _ClassVar[int]
    IN_FLIGHT_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    ANSWERED_FIELD_NUMBER: _ClassVar[int]
    description: bytes
    at: int
    lane: str
    in_flight: int
    capacity: int
    answered: int
    def __init__(self, description: _Optional[bytes] = ..., at: _Optional[int] = ..., lane: _Optional[str] = ..., in_flight: _Optional[int] = ..., capacity: _Optional[int] = ..., answered: _Optional[int] = ...) -> None: ...
