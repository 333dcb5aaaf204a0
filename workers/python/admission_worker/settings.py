"""A policy's settings: JSON from the operator's configuration, converted and validated before a call.

Settings are one JSON object, never empty: no settings are ``{}``. The same conversion runs in ``ValidateSettings``,
when the configuration is loaded, and before the first call. Equal settings are equal bytes, which are the cache key of
the converted settings.
"""

import inspect
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from admission_worker import json_text
from admission_worker.conversion import errors_of, unknown_members
from admission_worker.errors import InvalidSettingsError, SettingsError, SettingsWarning
from admission_worker.limits import Limits

Finding = SettingsError | SettingsWarning | str
Validate = Callable[[Any], Iterable[Finding] | None]
"""An author's own check: it gets the converted settings and returns errors and warnings; a string is an error of the
settings as a whole."""

_LOG = logging.getLogger(__name__)

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class NoSettings(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The settings of a policy without settings: only ``{}``."""


class SettingsType(msgspec.Struct, frozen=True, kw_only=True):
    """The type of a policy's settings.

    Args:
        shape: a msgspec Struct, a dataclass, a TypedDict or another type that is a JSON object.
        validate: the author's own check, for rules beyond the type; None: there is none.

    Raises:
        TypeError: msgspec does not support ``shape``, or it is not a JSON object.
    """

    shape: Any = NoSettings
    validate: Validate | None = None

    def __post_init__(self) -> None:
        schema = msgspec.json.schema(self.shape)
        reference = schema.get("$ref", "").removeprefix("#/$defs/")
        if schema.get("$defs", {}).get(reference, schema).get("type") != "object":
            message = f"settings: must be a type that is a JSON object, such as a msgspec.Struct, is {self.shape!r}"
            raise TypeError(message)

    def schema(self) -> bytes:
        """A JSON Schema (2020-12) of the settings, as JSON text."""
        return msgspec.json.encode({"$schema": DIALECT} | msgspec.json.schema(self.shape))

    def read(self, text: bytes) -> tuple[Any, tuple[str, ...]]:
        """Decode, convert and check settings.

        Args:
            text: one JSON object in UTF-8.

        Returns:
            The settings in their type, and warnings for the operator.

        Raises:
            InvalidSettingsError: with all errors.
        """
        try:
            value = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            message = f"The settings must be one JSON object, never empty: {error}"
            raise InvalidSettingsError([SettingsError("", message)]) from None
        if not isinstance(value, dict):
            message = f"The settings must be one JSON object, found {_json_type(value)}"
            raise InvalidSettingsError([SettingsError("", message)])
        try:
            return self._converted(value, text)
        except InvalidSettingsError:
            raise
        except Exception as error:
            _LOG.exception("the check of settings of type %s raised", self.shape)
            message = f"The settings could not be checked: {type(error).__name__} in the worker; see its log"
            raise InvalidSettingsError([SettingsError("", message)]) from error

    def _converted(self, value: dict[str, Any], text: bytes) -> tuple[Any, tuple[str, ...]]:
        """As ``read``, for a decoded object. Exceptions of the author's own code pass through."""
        if errors := tuple(errors_of(value, self.shape)):
            raise InvalidSettingsError(errors)
        settings = json_text.decoder(self.shape).decode(text)  # from the text, so that numbers keep their digits
        warnings = [
            f"/{name} is no member of these settings and is ignored" for name in unknown_members(value, self.shape)
        ]
        return settings, (*warnings, *self._checked(settings))

    def _checked(self, settings: Any) -> tuple[str, ...]:
        """Run the author's check; return its warnings, raise its errors."""
        if self.validate is None:
            return ()
        findings = self.validate(settings)
        if isinstance(findings, str):
            findings = (findings,)
        errors, warnings = [], []
        for finding in findings or ():
            if isinstance(finding, SettingsWarning):
                warnings.append(finding.message)
            else:
                errors.append(finding if isinstance(finding, SettingsError) else SettingsError("", str(finding)))
        if errors:
            raise InvalidSettingsError(errors)
        return tuple(warnings)


class KeptSettings:
    """A cache of the last converted settings, by policy and bytes, bounded in number and in the size of their text.

    Invalid settings are not cached.
    """

    __slots__ = ("_bytes", "_kept", "_limits")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._kept: OrderedDict[tuple[str, bytes], Any] = OrderedDict()
        self._bytes = 0

    def read(self, policy: str, kind: SettingsType, text: bytes) -> Any:
        """As ``SettingsType.read``, without the warnings, and from the cache if possible."""
        key = (policy, text)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        settings, _ = kind.read(text)
        self._kept[key] = settings
        self._bytes += len(text)
        while len(self._kept) > self._limits.settings_kept or self._bytes > self._limits.settings_kept_bytes:
            (_, dropped), _ = self._kept.popitem(last=False)
            self._bytes -= len(dropped)
        return settings


def checked_validate(validate: Any) -> Validate | None:
    """Check an author's ``validate``.

    Raises:
        TypeError: it is not callable, or is ``async``; a check must not wait for other systems.
    """
    if validate is None:
        return None
    if not callable(validate) or inspect.iscoroutinefunction(validate):
        message = f"validate: must be a plain function of the settings, is {validate!r}"
        raise TypeError(message)
    check: Validate = validate
    return check


def _json_type(value: Any) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")
