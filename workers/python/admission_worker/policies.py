"""What a policy is: a name, a phase, a function, its settings and what it claims. Checked when it is registered.

A mistake in a registration is the author's, and shows when the worker's module is imported: nothing is served until all
policies are sound.
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
"""RFC 1123's label as Kubernetes has it: "at most 63 characters, only lowercase alphanumeric characters or '-', start
and end with an alphanumeric character"."""


class Phase(Enum):
    """Kubernetes' two admission phases, with the contract's numbers."""

    MUTATING = worker_pb2.PHASE_MUTATING
    VALIDATING = worker_pb2.PHASE_VALIDATING


class Style(Enum):
    """How a policy's function is run."""

    INLINE = "inline"
    """On the event loop: a pure function of its document, which takes microseconds."""
    ASYNC = "async"
    """As a task: a coroutine function, which waits for others; cancelled when nobody waits for it any more."""
    BLOCKING = "blocking"
    """In a thread, of which there are a bounded number: a function that waits without ``await``."""


class Policy(Struct, frozen=True, kw_only=True):
    """One registered policy.

    Args:
        name: a DNS-1123 label, unique in its worker.
        phase: the phase in which it can be used.
        function: the author's function.
        style: how it is run.
        settings: what its settings must be.
        inputs: which parts of the AdmissionRequest it reads.
        writes: which parts of the object it changes; None in a validating policy.
        version: its own version, or ``""`` for the worker's.
        description: one or two sentences for the operator.

    Raises:
        ValueError: the name is no DNS-1123 label.
        TypeError: the function cannot be called with the request, and the settings where there are any.
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
        """Whether the function is given settings."""
        return self.settings.shape is not NoSettings

    def arguments(self, request: Any, settings: Any) -> tuple[Any, ...]:
        """What the function is called with."""
        return (request, settings) if self.has_settings else (request,)

    def description_message(self) -> worker_pb2.PolicyDescription:
        """What ``Describe`` says about it."""
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
    """How a function is to be run.

    Raises:
        TypeError: a coroutine function that is marked as blocking, or something that cannot be called.
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
