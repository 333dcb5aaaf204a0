"""Whose fault it was. Each of these becomes a failure or a settings error, never a crash and never a verdict."""

from collections.abc import Iterable

from msgspec import Struct


class InvalidDocumentError(ValueError):
    """The gateway's fault: the document is not JSON, or a member of it is not what an AdmissionRequest holds there.

    The message is safe to show: it holds positions and types, never values.
    """


class InvalidAnswerError(TypeError):
    """The policy author's fault: an answer that cannot mean anything, such as a warning that is no text.

    The message is safe to show: it holds names and types, never values.
    """


class SettingsError(Struct, frozen=True):
    """One thing that is wrong with settings.

    Args:
        pointer: where, as a JSON Pointer (RFC 6901) over the settings, such as ``/labels/team``; empty: the settings
            as a whole.
        message: what is expected and what was found, in one sentence.
    """

    pointer: str
    message: str

    def __str__(self) -> str:
        """``/labels/team: Expected ...``."""
        return f"{self.pointer}: {self.message}" if self.pointer else self.message


class SettingsWarning(Struct, frozen=True):
    """What the operator should know about settings that are accepted, such as a deprecated member."""

    message: str


class InvalidSettingsError(ValueError):
    """The operator's fault: all that is wrong with a policy's settings.

    Attributes:
        errors: one for each thing that is wrong; never empty.
    """

    def __init__(self, errors: Iterable[SettingsError]) -> None:
        self.errors = tuple(errors)
        super().__init__("; ".join(map(str, self.errors)))


class AddressError(Exception):
    """The operator's fault: the address cannot be listened on. The message is one line."""


class CertificateError(Exception):
    """The operator's fault: a certificate, a key or an authority cannot be used. The message is one line."""
