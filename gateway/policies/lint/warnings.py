"""What is allowed, and probably not meant: warnings, few enough to be read."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from gateway.policies import field_errors
from gateway.policies.errors import ConfigurationError
from gateway.policies.lint.subresources import unmatched_subresources
from gateway.policies.lint.unique_inputs import named_uniques, spoiled_cache
from gateway.policies.metadata import selects_by_name
from gateway.policies.model import Configuration, FailurePolicy, Policy, Rule, Selector, SideEffects
from gateway.policies.workers.ca_bundle import holds_certificate
from gateway.policies.workers.grpc_names import stays_here
from gateway.policies.workers.targets import Worker
from gateway.scopes.inputs import NAMESPACE
from gateway.scopes.pointer import format_pointer


def warnings(configuration: Configuration) -> tuple[ConfigurationError, ...]:
    """Warnings about the workers, then about the policies without a fault, in chain order, mutating first."""
    has_namespaces = bool(configuration.namespaces)
    policies = [policy for policy in configuration.mutating + configuration.validating if policy.fault is None]
    workers = configuration.workers.values()
    found = [*_in_plain_text(workers), *_without_authorities(workers)]
    for policy in policies:
        found += _about(policy, has_namespaces=has_namespaces)
    return tuple(found)


def _in_plain_text(workers: Iterable[Worker]) -> Iterator[ConfigurationError]:
    """One for all workers together: inside a mesh it is how things are meant to be, for every one of them."""
    exposed = [
        worker for worker in workers if worker.grpc and worker.grpc.tls is None and not stays_here(worker.grpc.target)
    ]
    if exposed:
        names = field_errors.few([worker.name for worker in exposed])
        noun = "worker" if len(exposed) == 1 else "workers"
        yield ConfigurationError(
            place=replace(exposed[0].place, path="spec.grpc.tls"),
            message=f"what is sent to {noun} {names} leaves this machine unencrypted, and the gateway believes any "
            "answer from there; set tls, unless a mesh encrypts it",
        )


def _without_authorities(workers: Iterable[Worker]) -> Iterator[ConfigurationError]:
    """Of native webhooks: in a Worker document it is an error."""
    for worker in workers:
        bundle = b"" if worker.webhook is None else worker.webhook.ca_bundle
        if bundle and not holds_certificate(bundle):
            yield ConfigurationError(
                place=replace(worker.place, path=f"{worker.place.path}.clientConfig.caBundle"),
                message="caBundle holds no PEM certificate: each call will fail; put the certificates of the webhook's "
                "authority there, or leave it out if the system's authorities vouch for it",
            )


def _about(policy: Policy, *, has_namespaces: bool) -> Iterator[ConfigurationError]:
    if not policy.rules:
        yield _warning(policy, "rules", "there are no rules, so the policy never matches")
    if policy.failure_policy is FailurePolicy.FAIL and _selects_everything(policy) and any(map(_is_all, policy.rules)):
        yield _warning(
            policy,
            "rules",
            "the policy matches every resource and fails closed: while its worker fails, nothing in the cluster "
            "can be changed, not even to repair it; narrow the rules, or exclude namespaces such as kube-system",
        )
    unmatched = unmatched_subresources(policy)
    if unmatched is not None:
        yield _warning(policy, "rules", unmatched)
    # Of an isolated policy the API server itself matches the selector.
    by_labels = not selects_by_name(policy.namespace_selector)
    if by_labels and not has_namespaces and not policy.isolate:
        yield _warning(
            policy,
            "namespaceSelector",
            "there is no Namespace document, so no namespace's labels are known: every request in a namespace that the "
            "rules match fails; serve with --cluster, or put Namespace documents beside the policies",
        )
    if policy.inputs.needs_namespace and not has_namespaces:
        yield _warning(
            policy,
            "inputs",
            f"/{NAMESPACE}: there is no Namespace document, so no namespace's labels are known: every request in a "
            "namespace that the policy is about fails; serve with --cluster, put Namespace documents beside the "
            "policies, or remove it",
        )
    if policy.shadow is not None and policy.side_effects is SideEffects.NONE_ON_DRY_RUN:
        yield _warning(
            policy,
            "shadow",
            "sideEffects is NoneOnDryRun, so only dry runs are sent to the shadow: for other requests it would have "
            "the effect a second time; write sideEffects: None if a call changes nothing outside of the request",
        )
    yield from _about_scopes(policy)


def _about_scopes(policy: Policy) -> Iterator[ConfigurationError]:
    for message in named_uniques(policy):
        yield _warning(policy, "inputs", message)
    unseen = _unseen(policy)
    if unseen:
        yield _warning(
            policy,
            "writes",
            f"{field_errors.few(unseen)}: not in inputs, so the policy does not see what it has written, and cannot be "
            "idempotent; add it to inputs, with /object in front",
        )
    if policy.cache is None:
        return
    spoiled = spoiled_cache(policy)
    if spoiled is not None:
        yield _warning(policy, "cache", spoiled)
    if policy.side_effects is SideEffects.NONE_ON_DRY_RUN:
        yield _warning(
            policy,
            "cache",
            "sideEffects is NoneOnDryRun, so only dry runs use the cache: any other request has to have its effect; "
            "write sideEffects: None if a call changes nothing outside of the request, or remove cache",
        )


def _unseen(policy: Policy) -> list[str]:
    """The places that are granted by name to be changed, and not to be seen."""
    granted, seen = policy.writes.granted, policy.inputs.object
    if granted is None or seen is None:
        return []
    return [format_pointer(pointer) for pointer in granted.pointers if not seen.covers(pointer)]


def _selects_everything(policy: Policy) -> bool:
    return policy.namespace_selector == Selector() and policy.object_selector == Selector()


def _is_all(rule: Rule) -> bool:
    return "*" in rule.api_groups and ("*" in rule.resources or "*/*" in rule.resources)


def _warning(policy: Policy, field: str, message: str) -> ConfigurationError:
    return ConfigurationError(place=replace(policy.place, path=f"{policy.place.path}.{field}"), message=message)
