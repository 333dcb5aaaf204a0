"""What a policy, a worker and a namespace are, once read. Values only: frozen, keyword-only, without behaviour.

A policy that has an error does not disappear ("not knowing is not allowing"): it stands in the chain with its
``fault``, as a failure ``CONFIGURATION`` under its failurePolicy. Whatever of it could not be read takes the
strictest meaning: rules that match everything, selectors that select everything, failurePolicy Fail; nothing to see,
nothing to change, nothing kept.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Final

from msgspec import Struct, field

from gateway.cel.condition import Condition
from gateway.enums import StrEnum
from gateway.policies.errors import ConfigurationError, Place
from gateway.policies.workers.targets import Worker
from gateway.scopes.inputs import Inputs
from gateway.scopes.writes import Writes

ANY: Final = "*"
"""Whatever there is, in a rule: any operation, API group, version or resource."""


class Phase(StrEnum):
    """Kubernetes' two admission phases."""

    MUTATING = "mutating"
    VALIDATING = "validating"


class FailurePolicy(StrEnum):
    """What becomes of a request that the policy could not judge (admissionregistration.k8s.io/v1 FailurePolicyType)."""

    FAIL = "Fail"
    IGNORE = "Ignore"


class MatchPolicy(StrEnum):
    """How rules meet a request in another version of the same resource (v1 MatchPolicyType)."""

    EXACT = "Exact"
    EQUIVALENT = "Equivalent"


class SideEffects(StrEnum):
    """Whether calling the worker changes anything in the world (SideEffectClass).

    v1 and our own kinds accept only the first two; v1beta1 knows all four, and its default is Unknown.
    """

    NONE = "None"
    NONE_ON_DRY_RUN = "NoneOnDryRun"
    SOME = "Some"
    UNKNOWN = "Unknown"

    @property
    def permits_dry_run(self) -> bool:
        """Whether the worker may be called for a dry run."""
        return self in {SideEffects.NONE, SideEffects.NONE_ON_DRY_RUN}


class ReinvocationPolicy(StrEnum):
    """Whether a mutating policy is called again after later ones changed the object (v1 ReinvocationPolicyType)."""

    NEVER = "Never"
    IF_NEEDED = "IfNeeded"


class Mode(StrEnum):
    """What a policy's verdict does. Only ``enforce`` refuses or changes anything."""

    ENFORCE = "enforce"
    WARN = "warn"
    """A denial becomes a warning to the user; a change is not applied."""

    AUDIT = "audit"
    """Verdict and change are recorded only."""


class OnConflict(StrEnum):
    """What becomes of a change to a field that another policy of the same review has written, or writes after it.

    Of two policies in conflict, the stricter one's word counts. It is recorded in any case.
    """

    ALLOW = "allow"
    """Only the record and the metrics show it."""

    WARN = "warn"
    """The user is warned, and the audit log records it."""

    DENY = "deny"
    """The later of the two fails with ``PATCH_CONFLICT``, which refuses the request whatever its failurePolicy."""


class Scope(StrEnum):
    """Which resources a rule is about (v1 ScopeType)."""

    ALL = "*"
    CLUSTER = "Cluster"
    NAMESPACED = "Namespaced"


class Rule(Struct, frozen=True, kw_only=True):
    """A RuleWithOperations: which requests a policy is about. ``*`` is kept as it is written."""

    operations: tuple[str, ...]
    api_groups: tuple[str, ...]
    api_versions: tuple[str, ...]
    resources: tuple[str, ...]
    scope: Scope = Scope.ALL


EVERYTHING = Rule(operations=("*",), api_groups=("*",), api_versions=("*",), resources=("*/*",))
"""The rule of a policy whose own rules could not be read."""


class Requirement(Struct, frozen=True, kw_only=True):
    """One matchExpression: ``operator`` is In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class Selector(Struct, frozen=True, kw_only=True):
    """A metav1.LabelSelector; empty, it selects everything. matchLabels are requirements ``In`` one value."""

    requirements: tuple[Requirement, ...] = ()


class MatchCondition(Struct, frozen=True, kw_only=True):
    """A v1 MatchCondition: a CEL expression that must be true for the policy to be called, and its name."""

    name: str
    condition: Condition


class Cache(Struct, frozen=True, kw_only=True):
    """How long a verdict is reused for other reviews with the same document, in seconds.

    ``ttl``: as a fresh verdict. ``stale_if_error``: how much longer if the worker has failed.
    """

    ttl: float
    stale_if_error: float = 0.0


class Shadow(Struct, frozen=True, kw_only=True):
    """A second call whose result is never applied: another worker, another policy of a worker, other settings.

    ``policy`` and ``settings`` are as those of Policy. What it sees, and may change, are the policy's.
    """

    worker: str
    policy: str
    settings: bytes = b"{}"


class Policy(Struct, frozen=True, kw_only=True, dict=True):
    """One policy of a MutatingPolicyConfiguration or ValidatingPolicyConfiguration, defaults filled in.

    ``name`` is unique within its configuration, ``qualified_name`` (``CONFIGURATION/NAME``) within its phase.
    ``policy`` is which of the worker's policies is called, "" where the worker is a webhook. ``timeout`` is in seconds.
    ``settings`` is one JSON object in a canonical form (sorted keys, no blanks): equal settings are equal bytes.
    ``inputs`` and ``writes`` are what the operator grants. ``isolate``: it has a registration entry of its own.
    ``is_existing``: its worker is an existing webhook or a hook, whose refusals go out as it wrote them.
    ``contact`` and ``documentation`` (a URL): whom a user may ask about a denial, and what to read; "": not said.
    ``namesake``: a webhook before it in the same configuration has the same name (v1beta1 permits that).
    ``shadow`` changes nothing of all that; an error in it is no ``fault``, and leaves None.
    """

    phase: Phase
    configuration: str
    index: int
    name: str
    worker: str
    policy: str
    rules: tuple[Rule, ...]
    namespace_selector: Selector = Selector()
    object_selector: Selector = Selector()
    match_conditions: tuple[MatchCondition, ...] = ()
    match_policy: MatchPolicy = MatchPolicy.EQUIVALENT
    failure_policy: FailurePolicy = FailurePolicy.FAIL
    timeout: float = 10.0
    side_effects: SideEffects = SideEffects.NONE
    reinvocation_policy: ReinvocationPolicy = ReinvocationPolicy.NEVER
    settings: bytes = b"{}"
    inputs: Inputs = Inputs.EVERYTHING
    writes: Writes = Writes.DEFAULT
    cache: Cache | None = None
    on_conflict: OnConflict = OnConflict.ALLOW
    mode: Mode = Mode.ENFORCE
    isolate: bool = False
    shadow: Shadow | None = None
    is_existing: bool = False
    contact: str = ""
    documentation: str = ""
    namesake: bool = False
    place: Place = Place(file="", line=0)
    fault: str | None = None

    @cached_property
    def qualified_name(self) -> str:
        """``CONFIGURATION/NAME``: which policy this is, in logs and where two configurations use the same name;
        ``CONFIGURATION/NAME[INDEX]`` for the second of a name in the same configuration. Made once: each call needs it.
        """
        name = f"{self.configuration}/{self.name}"
        return f"{name}[{self.index}]" if self.namesake else name


class Configuration(Struct, frozen=True, kw_only=True):
    """Everything that a source contained at one moment: complete or not at all.

    ``mutating`` and ``validating`` are in chain order: by configuration name, then by place in its list.
    ``namespaces`` maps a namespace's name to its labels (from Namespace documents). ``errors`` are all errors
    found; those of a policy stand in its ``fault`` too, but for those in its shadow. ``fatal`` says that the chain
    itself could not be known (an unreadable file, an unknown kind, a configuration without a name): such a
    configuration must not be served. ``fatal_texts`` are the names of the texts in which that is so.
    """

    workers: Mapping[str, Worker] = field(default_factory=dict)
    mutating: tuple[Policy, ...] = ()
    validating: tuple[Policy, ...] = ()
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    errors: tuple[ConfigurationError, ...] = ()
    warnings: tuple[ConfigurationError, ...] = ()
    fatal: bool = False
    fatal_texts: frozenset[str] = frozenset()

    def policies(self, phase: Phase) -> tuple[Policy, ...]:
        """The chain of one phase."""
        return self.mutating if phase is Phase.MUTATING else self.validating
