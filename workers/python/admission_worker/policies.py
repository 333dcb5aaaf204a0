"""A policy: a name, a phase, a function, its settings and its claims, checked when it is registered.

An error in a registration is the author's, and raises when the worker's module is imported, before the worker serves.
"""

import inspect
import re
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Any

from msgspec import Struct

from admission_worker.answers import Answer
from admission_worker.claims import Claim, message_of
from admission_worker.proto.admission.worker.v1 import worker_pb2
from admission_worker.settings import NoSettings, SettingsType

Function = Callable[..., Answer | Awaitable[Answer | None] | None]

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""RFC 1123's label in Kubernetes: "at most 63 characters, only lowercase alphanumeric characters or '-', start
and end with an alphanumeric character"."""


class Phase(Enum):
    """Kubernetes' two admission phases, with the contract's numbers."""

    MUTATING = worker_pb2.PHASE_MUTATING
    VALIDATING = worker_pb2.PHASE_VALIDATING


class Style(Enum):
    """How the worker runs a policy's function."""

    INLINE = "inline"
    """On the event loop: a pure function of its document, which takes microseconds."""
    ASYNC = "async"
    """As a task: a coroutine function, cancelled with its call."""
    BLOCKING = "blocking"
    """In one of a bounded number of threads: a function that waits without ``await``."""


class Policy(Struct, frozen=True, kw_only=True):
    """One registered policy.

    Args:
        name: a DNS-1123 label, unique in its worker.
        phase: its phase.
        function: the author's function.
        style: how the worker runs it.
        settings: the type of its settings.
        inputs: the parts of the AdmissionRequest that it reads.
        writes: the parts of the object that it changes; None in a validating policy.
        version: its own version, or ``""`` for the worker's.
        description: one or two sentences for the operator.

    Raises:
        ValueError: the name is not a DNS-1123 label.
        TypeError: the function does not take the request, and the settings if it has any.
    """

    name: str
    phase: Phase
    function: Function
    style: Style
    settings: SettingsType
    inputs: Claim = None
    writes: Claim = None
    version: str = ""
    description: str = ""

    def __post_init__(self) -> None:
        if not _DNS_LABEL.fullmatch(self.name):
            message = f"policy {self.name!r}: the name must be a DNS-1123 label such as 'required-labels'"
            raise ValueError(message)
        try:
            inspect.signature(self.function).bind(*self.arguments(None, None))
        except TypeError as error:
            wanted = "(request, settings)" if self.has_settings else "(request), as it has no settings"
            message = f"policy {self.name}: its function must take {wanted}: {error}"
            raise TypeError(message) from None

    @property
    def has_settings(self) -> bool:
        """Whether the function takes settings."""
        return self.settings.shape is not NoSettings

    def arguments(self, request: Any, settings: Any) -> tuple[Any, ...]:
        """The function's arguments."""
        return (request, settings) if self.has_settings else (request,)

    def description_message(self) -> worker_pb2.PolicyDescription:
        """Its description for ``Describe``."""
        return worker_pb2.PolicyDescription(
            name=self.name,
            version=self.version,
            phases=[self.phase.value],
            inputs=message_of(self.inputs),
            writes=message_of(self.writes),
            settings_schema=self.settings.schema(),
            description=self.description,
        )


def style_of(function: Any, *, blocking: bool) -> Style:
    """How to run a function.

    Raises:
        TypeError: it is not callable, or is a coroutine function marked as blocking.
    """
    if not callable(function):
        message = f"a policy must be a function, is {function!r}"
        raise TypeError(message)
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
        if blocking:
            message = f"{function!r} is async: it cannot be blocking too"
            raise TypeError(message)
        return Style.ASYNC
    return Style.BLOCKING if blocking else Style.INLINE
