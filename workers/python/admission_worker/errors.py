"""Errors, by who has to correct them. Each becomes a failure or a settings error, never a crash or a verdict."""

from collections.abc import Iterable

from msgspec import Struct


class InvalidDocumentError(ValueError):
    """For the gateway: the document is not JSON, or a member does not have the type of an AdmissionRequest.

    The message can be shown: it has positions and types, never values.
    """


class InvalidAnswerError(TypeError):
    """For the policy's author: an invalid answer, such as a warning that is not text.

    The message can be shown: it has names and types, never values.
    """


class SettingsError(Struct, frozen=True):
    """One error in settings.

    Args:
        pointer: its place, as a JSON Pointer (RFC 6901) over the settings, such as ``/labels/team``; empty: the
            settings as a whole.
        message: what is expected and what was found, in one sentence.
    """

    pointer: str
    message: str

    def __str__(self) -> str:
        """``/labels/team: Expected ...``."""
        return f"{self.pointer}: {self.message}" if self.pointer else self.message


class SettingsWarning(Struct, frozen=True):
    """A warning about valid settings for the operator, such as a deprecated member."""

    message: str


class InvalidSettingsError(ValueError):
    """For the operator: all errors in a policy's settings.

    Attributes:
        errors: at least one.
    """

    def __init__(self, errors: Iterable[SettingsError]) -> None:
        self.errors = tuple(errors)
        super().__init__("; ".join(map(str, self.errors)))


class AddressError(Exception):
    """For the operator: the worker cannot listen on the address. The message is one line."""


class CertificateError(Exception):
    """For the operator: a certificate, a key or a CA cannot be used. The message is one line."""
