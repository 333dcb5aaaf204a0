"""The schema of one policy: the fields of ``gateway.policies.fields``, by their names, words and limits there."""

from typing import Final

from deploy.generator.schemas import (
    ANY_OBJECT,
    IS_DNS_NAME,
    Schema,
    array,
    dns_name,
    flag,
    mapping,
    number,
    require_equal,
    rule,
    text,
    words,
)
from gateway.policies.fields import cache, match_conditions, policy, rules, selectors
from gateway.policies.fields.pointers import MAX_POINTERS
from gateway.policies.fields.versions import OWN
from gateway.policies.fields.webhook import TIMEOUT_RANGE
from gateway.policies.model import FailurePolicy, MatchPolicy, Mode, OnConflict, Phase, ReinvocationPolicy, Scope
from gateway.policies.names import SUBDOMAIN_MAX, TOO_FEW_SEGMENTS

MAX_POLICIES: Final = 1000
"""Of one object: etcd takes 1.5 MB, which is 1,500 bytes for each. It bounds what the API server's rules may cost."""

MAX_RULES: Final = 1000
"""Of one policy, for the same reason."""

_LINE: Final = r"^([^\p{C}\p{Z}]( *[^\p{C}\p{Z}])*)?$"
"""One line of printable characters, perhaps with blanks between them."""

_URL: Final = r"^(https?://[^\p{C}\p{Z}/?#]+[^\p{C}\p{Z}]*)?$"

_POINTER: Final = "^(/([^~/]|~[01])*)+$"
"""RFC 6901, without the empty pointer: it is the whole, which is refused."""

_DURATION: Final = r"^[-+]?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$"
_MAX_DURATION: Final = 64


def policy_schema(phase: Phase) -> Schema:
    """One element of ``policies``."""
    fields = _fields()
    return mapping("", {name: fields[name] for name in fields if name in policy.FIELDS[phase]}, required=_REQUIRED)


_REQUIRED: Final = ("name", "worker", "sideEffects")


def _fields() -> dict[str, Schema]:
    made = {
        "name": text(
            "A DNS name of at least three segments, unique in this object. Messages, metrics and logs contain it.",
            dns_name(),
            rule(f"!({IS_DNS_NAME}) || self.matches('[.].*[.]')", TOO_FEW_SEGMENTS),
            maxLength=SUBDOMAIN_MAX,
        ),
        "worker": _worker("The name of the Worker that judges."),
        "policy": _policy("Which of the worker's policies. Default: the first segment of name."),
        "rules": array("The requests that the policy judges. None: it judges nothing.", _rule(), maxItems=MAX_RULES),
        "namespaceSelector": _selector("Selects by the labels of the request's namespace. Default: every namespace."),
        "objectSelector": _selector("Selects by the labels of the object or the old object. Default: every object."),
        "matchPolicy": words("Default: Equivalent.", MatchPolicy),
        "matchConditions": array(
            "CEL expressions, all of which must be true.",
            mapping("", _conditions(), required=match_conditions.FIELDS),
            kind="map",
            keys=["name"],
            maxItems=match_conditions.MAX_CONDITIONS,
        ),
        "failurePolicy": words("What happens when the policy fails. Default: Fail.", FailurePolicy),
        "timeoutSeconds": number(
            "More than 0, at most 30; may be a fraction. Default: 10.",
            rule("self > 0.0 && self <= 30.0", TIMEOUT_RANGE),
        ),
        "sideEffects": words("Whether a call changes anything besides the object.", OWN.side_effects),
        "reinvocationPolicy": words(
            "IfNeeded: the policy is called once more if a later one changed the object. Default: Never.",
            ReinvocationPolicy,
        ),
        "settings": _settings("Handed to the worker, which checks them. Default: {}."),
        "inputs": _pointers("JSON Pointers into the request: what the worker is sent. Default: all but uid."),
        "writes": _pointers(
            "JSON Pointers into the object: what the policy may change. Default: all but identity, owners, status."
        ),
        "cache": mapping(
            "For how long a verdict is reused. Default: not at all.",
            {"ttl": _duration("More than 0, at most 24h."), "staleIfError": _duration("At most 168h.")},
            required=["ttl"],
        ),
        "onConflict": words("What happens when another policy writes the same field. Default: warn.", OnConflict),
        "mode": words("warn: a denial becomes a warning. audit: it is recorded. Default: enforce.", Mode),
        "isolate": flag("Whether the policy has an entry of its own. Default: false."),
        "contact": text("Whom to ask about a denial, which ends with it.", pattern=_LINE, maxLength=policy.MAX_CONTACT),
        "documentation": text(
            "The URL of what to read about a denial, which ends with it.",
            pattern=_URL,
            maxLength=policy.MAX_DOCUMENTATION,
        ),
        "shadow": mapping(
            "Called too, after the answer has left, compared, and never applied.",
            {
                "worker": _worker("The name of a Worker."),
                "policy": _policy("Default: the policy's."),
                "settings": _settings("Default: the policy's."),
            },
            required=["worker"],
        ),
    }
    require_equal(made, {name for fields in policy.FIELDS.values() for name in fields})
    require_equal(made["shadow"]["properties"], policy.SHADOW)
    require_equal(made["cache"]["properties"], cache.FIELDS)
    return made


def _worker(description: str) -> Schema:
    return text(description, dns_name(), maxLength=SUBDOMAIN_MAX)


def _policy(description: str) -> Schema:
    return text(description, dns_name(), maxLength=SUBDOMAIN_MAX)


def _settings(description: str) -> Schema:
    return {"description": description, **ANY_OBJECT}


def _pointers(description: str) -> Schema:
    return array(description, text(pattern=_POINTER), kind="set", maxItems=MAX_POINTERS)


def _duration(description: str) -> Schema:
    return text(description, pattern=_DURATION, maxLength=_MAX_DURATION)


def _conditions() -> dict[str, Schema]:
    made = {"name": text(minLength=1), "expression": text(minLength=1)}
    require_equal(made, match_conditions.FIELDS)
    return made


def _rule() -> Schema:
    made = {
        "operations": array("", words("", rules.OPERATIONS), minItems=1),
        "apiGroups": array('"" is the core group; * alone is every group.', text(), minItems=1),
        "apiVersions": array("* alone is every version.", text(minLength=1), minItems=1),
        "resources": array(
            "Plurals, such as pods, pods/exec, */scale; */* is everything.", text(minLength=1), minItems=1
        ),
        "scope": words("Default: *.", Scope),
    }
    require_equal(made, rules.FIELDS)
    return mapping("", made, required=[name for name in made if name != "scope"])


def _selector(description: str) -> Schema:
    requirement = {
        "key": text(),
        "operator": words("", (*selectors.WITH_VALUES, *selectors.WITHOUT_VALUES)),
        "values": array("", text()),
    }
    require_equal(requirement, selectors.REQUIREMENT_FIELDS)
    made = {
        "matchLabels": {"type": "object", "additionalProperties": text()},
        "matchExpressions": array("", mapping("", requirement, required=["key", "operator"])),
    }
    require_equal(made, selectors.SELECTOR_FIELDS)
    return mapping(description, made, **{"x-kubernetes-map-type": "atomic"})
