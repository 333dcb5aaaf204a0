"""A worker: a name, a version, and policies, each of them a decorated function."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import Any, NoReturn, TypedDict, TypeVar, Unpack

from admission_worker.certificates import Tls
from admission_worker.claims import Claim, Everything, inputs_claim, writes_claim
from admission_worker.command import run
from admission_worker.limits import Limits
from admission_worker.policies import Phase, Policy, style_of
from admission_worker.probes import probe_policies
from admission_worker.server import serving
from admission_worker.settings import NoSettings, SettingsType, Validate, checked_validate

_F = TypeVar("_F", bound=Callable[..., Any])


class _Given(TypedDict):
    """The checked arguments of the two decorators."""

    phase: Phase
    settings: SettingsType
    inputs: Claim
    writes: Claim
    version: str


class Worker:
    """A worker: registers policies and serves them.

    Args:
        name: for logs, such as ``labels``. It need not be the name that the gateway's configuration gives it.
        version: of the worker's build, such as ``1.4.2`` or a commit. It must change whenever a verdict may change: it
            is part of the key under which verdicts are cached.

    Raises:
        ValueError: the version is empty.
    """

    def __init__(self, name: str, *, version: str) -> None:
        if not version:
            message = f"worker {name!r}: a version is required, such as '1.0.0'; verdicts are cached by it"
            raise ValueError(message)
        self.name = name
        self.version = version
        self._policies: dict[str, Policy] = {}

    @property
    def policies(self) -> Mapping[str, Policy]:
        """The registered policies by name."""
        return MappingProxyType(self._policies)

    def validating(  # noqa: PLR0913 - what a policy is, all but the name by keyword
        self,
        name: str,
        *,
        settings: Any = None,
        validate: Validate | None = None,
        inputs: Iterable[str] | Everything | None = None,
        version: str = "",
        description: str | None = None,
        blocking: bool = False,
    ) -> Callable[[_F], _F]:
        """Register a function as a validating policy, which allows or denies and changes nothing.

        Args:
            name: a DNS-1123 label, as the configuration's ``policy`` names it.
            settings: the type of its settings, a msgspec Struct or a dataclass; None: it has none, and its
                function takes only the request.
            validate: a further check of the converted settings, which returns errors (``SettingsError`` or a string)
                and warnings (``SettingsWarning``).
            inputs: the parts of the AdmissionRequest that it reads, as JSON Pointers such as
                ``/object/metadata/labels`` (a segment ``*`` is every element or member), or ``EVERYTHING``; None:
                unset. The policy gets only these parts, and verdicts are cached by them.
            version: its own version, if it changes more rarely than the worker.
            description: for the operator; None: the first paragraph of the function's docstring.
            blocking: whether it waits without ``await``, and so must run in a thread.

        Returns:
            A decorator that returns the function unchanged.

        Raises:
            ValueError: the name is not a DNS-1123 label or is taken, or a claim is not in an AdmissionRequest.
            TypeError: the settings type is not a JSON object, or the function does not take a policy's arguments.
        """
        return self._registering(
            name=name,
            phase=Phase.VALIDATING,
            settings=SettingsType(shape=settings or NoSettings, validate=checked_validate(validate)),
            inputs=inputs_claim(inputs, f"policy {name}: inputs"),
            writes=None,
            version=version,
            description=description,
            blocking=blocking,
        )

    def mutating(  # noqa: PLR0913 - as validating
        self,
        name: str,
        *,
        settings: Any = None,
        validate: Validate | None = None,
        inputs: Iterable[str] | Everything | None = None,
        writes: Iterable[str] | Everything | None = None,
        version: str = "",
        description: str | None = None,
        blocking: bool = False,
    ) -> Callable[[_F], _F]:
        """Register a function as a mutating policy: it allows, perhaps with a change, or denies.

        Args:
            name: as for ``validating``, like all that is not named here.
            settings: as for ``validating``.
            validate: as for ``validating``.
            inputs: as for ``validating``.
            writes: which parts of the object it may change, as JSON Pointers over the object such as
                ``/metadata/labels``, or ``EVERYTHING``; None: not said.
            version: as for ``validating``.
            description: as for ``validating``.
            blocking: as for ``validating``.

        Returns:
            A decorator that returns the function unchanged.

        Raises:
            ValueError: as for ``validating``.
            TypeError: as for ``validating``.
        """
        return self._registering(
            name=name,
            phase=Phase.MUTATING,
            settings=SettingsType(shape=settings or NoSettings, validate=checked_validate(validate)),
            inputs=inputs_claim(inputs, f"policy {name}: inputs"),
            writes=writes_claim(writes, f"policy {name}: writes"),
            version=version,
            description=description,
            blocking=blocking,
        )

    def serve(
        self,
        address: str = "127.0.0.1:0",
        *,
        limits: Limits | None = None,
        tls: Tls | None = None,
        conformance: bool = False,
    ) -> AbstractAsyncContextManager[str]:
        """Serve inside an ``async with``, which yields the address for a gRPC client; for tests and for embedding.

        At its end the worker stops as the command does: it waits until no message has come for half a second. In tests
        use ``Limits(quiet_period=0.01)``.

        Args:
            address: ``HOST:PORT`` (port 0: any), ``unix:PATH`` or ``unix:///ABSOLUTE``.
            limits: None: the defaults.
            tls: certificate and key; None: without TLS.
            conformance: whether it also serves the probe policies of the conformance kit.

        Raises:
            ValueError: a policy of the worker has the name of a probe policy.
            AddressError: on entering, if the worker cannot listen on the address.
            CertificateError: on entering, if the files cannot be used.
        """
        return serving(
            worker=self.name,
            version=self.version,
            policies=self.served(conformance=conformance),
            address=address,
            limits=limits or Limits(),
            tls=tls,
        )

    def served(self, *, conformance: bool = False) -> Mapping[str, Policy]:
        """The served policies by name; with ``conformance`` also new probe policies.

        Raises:
            ValueError: as for ``serve``.
        """
        more = probe_policies() if conformance else {}
        if taken := sorted(more.keys() & self._policies.keys()):
            message = f"worker {self.name}: policy {taken[0]!r} has the name of a probe policy; give it another"
            raise ValueError(message)
        return MappingProxyType(self._policies | more)

    def main(self, argv: Sequence[str] | None = None) -> NoReturn:
        """Run the worker's command: serve until SIGTERM or SIGINT, then exit.

        Args:
            argv: the arguments without the program's name; None: the process's own.
        """
        run(self, argv)

    def _registering(
        self, *, name: str, description: str | None, blocking: bool, **given: Unpack[_Given]
    ) -> Callable[[_F], _F]:
        """The decorator that registers a function."""

        def register(function: _F) -> _F:
            style = style_of(function, blocking=blocking)
            text = _description(function, description)
            policy = Policy(name=name, function=function, style=style, description=text, **given)
            if name in self._policies:
                message = f"worker {self.name}: a policy {name!r} is registered already"
                raise ValueError(message)
            self._policies[name] = policy
            return function

        return register


def _description(function: Any, given: str | None) -> str:
    """The given description, or else the first paragraph of the function's docstring on one line."""
    if given is not None:
        return given
    first, _, _ = (inspect.getdoc(function) or "").partition("\n\n")
    return " ".join(first.split())
