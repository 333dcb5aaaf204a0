"""The narrowest rules that cover some rules: fewer of them, and not one request more.

A rule is a product: operations, groups, versions, resources and scope are each a set, and it matches a request if all
five do. Hence two steps that change no set of requests, repeated until neither finds anything:

* a rule that another covers in all five is dropped;
* rules that differ in one of the five only are one rule with both in that.

Within a list, what another element covers is dropped too (``pods/log`` beside ``pods/*``): the API server refuses
overlapping wildcards. The order of what comes out is that of what went in; no list is sorted, so that a rule that
cannot be narrowed stays as it was written.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import chain
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from gateway.policies.model import ANY, Rule, Scope

_Texts = tuple[str, ...]


def narrowed(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Rules that match a request if and only if one of these does."""
    current = tuple(dict.fromkeys(map(_tidied, rules)))
    while True:
        merged = current
        for merge in _MERGES:
            merged = _merged(merged, merge)
        merged = _without_covered(merged)
        if merged == current:
            return current
        current = merged


def without_groups(rules: Iterable[Rule], groups: Collection[str]) -> tuple[Rule, ...]:
    """The rules without these API groups, where they name them; a rule of nothing else is dropped. ``*`` stays."""
    left = ((rule, tuple(group for group in rule.api_groups if group not in groups)) for rule in rules)
    return tuple(replace(rule, api_groups=named) for rule, named in left if named)


def covers(wider: Rule, rule: Rule) -> bool:
    """Whether each request that ``rule`` matches is matched by ``wider``, list by list."""
    return (
        _lists_cover(wider.operations, rule.operations)
        and _lists_cover(wider.api_groups, rule.api_groups)
        and _lists_cover(wider.api_versions, rule.api_versions)
        and all(not _covering(text).isdisjoint(wider.resources) for text in rule.resources)
        and wider.scope in {Scope.ALL, rule.scope}
    )


def _tidied(rule: Rule) -> Rule:
    return replace(
        rule,
        operations=_tidy(rule.operations),
        api_groups=_tidy(rule.api_groups),
        api_versions=_tidy(rule.api_versions),
        resources=_tidy_resources(rule.resources),
    )


def _tidy(texts: Iterable[str]) -> _Texts:
    unique = tuple(dict.fromkeys(texts))
    return (ANY,) if ANY in unique else unique


def _tidy_resources(texts: Iterable[str]) -> _Texts:
    unique = dict.fromkeys(texts)
    return tuple(text for text in unique if unique.keys().isdisjoint(_covering(text) - {text}))


def _covering(text: str) -> frozenset[str]:
    """The entries that cover this one: itself, ``*`` for each resource itself, ``r/*``, ``*/s`` and ``*/*``."""
    resource, slash, sub = text.partition("/")
    return frozenset({text, f"{resource}/*", f"*/{sub}" if slash else ANY, "*/*"})


def _lists_cover(wider: _Texts, texts: _Texts) -> bool:
    return ANY in wider or set(texts) <= set(wider)


class _Merge(Struct, frozen=True, kw_only=True):
    """How rules that differ in one field only become one: the rule without that field, and the rule with all of it."""

    without: Callable[[Rule], Rule]
    join: Callable[[list[Rule]], Rule]


def _merged(rules: Iterable[Rule], merge: _Merge) -> tuple[Rule, ...]:
    """Rules that are equal but for one field become one, in the place of the first of them."""
    alike: dict[Rule, list[Rule]] = {}
    for rule in rules:
        alike.setdefault(_as_sets(merge.without(rule)), []).append(rule)
    return tuple(merge.join(same) if len(same) > 1 else same[0] for same in alike.values())


def _as_sets(rule: Rule) -> Rule:
    """The rule in a form that is equal where the sets are."""
    return Rule(
        operations=tuple(sorted(rule.operations)),
        api_groups=tuple(sorted(rule.api_groups)),
        api_versions=tuple(sorted(rule.api_versions)),
        resources=tuple(sorted(rule.resources)),
        scope=rule.scope,
    )


def _without_covered(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    by_resource: dict[str, list[Rule]] = {}
    for rule in rules:
        for text in rule.resources:
            by_resource.setdefault(text, []).append(rule)
    # No two rules cover each other, and so would both be dropped: being equal as sets, _merged has made them one.
    return tuple(
        rule
        for rule in rules
        if not any(other is not rule and covers(other, rule) for other in _competing(rule, by_resource))
    )


def _competing(rule: Rule, by_resource: Mapping[str, list[Rule]]) -> Iterator[Rule]:
    """The rules that cover one of the rule's resources at least; all others cannot cover the rule."""
    return chain.from_iterable(by_resource.get(text, ()) for text in _covering(rule.resources[0]))


def _all(lists: Iterable[_Texts]) -> Iterator[str]:
    return chain.from_iterable(lists)


def _joined_scope(rules: list[Rule]) -> Rule:
    return rules[0] if len({rule.scope for rule in rules}) == 1 else replace(rules[0], scope=Scope.ALL)


_MERGES: Final = (
    _Merge(
        without=lambda rule: replace(rule, resources=()),
        join=lambda rules: replace(rules[0], resources=_tidy_resources(_all(rule.resources for rule in rules))),
    ),
    _Merge(
        without=lambda rule: replace(rule, operations=()),
        join=lambda rules: replace(rules[0], operations=_tidy(_all(rule.operations for rule in rules))),
    ),
    _Merge(
        without=lambda rule: replace(rule, api_versions=()),
        join=lambda rules: replace(rules[0], api_versions=_tidy(_all(rule.api_versions for rule in rules))),
    ),
    _Merge(
        without=lambda rule: replace(rule, api_groups=()),
        join=lambda rules: replace(rules[0], api_groups=_tidy(_all(rule.api_groups for rule in rules))),
    ),
    _Merge(without=lambda rule: replace(rule, scope=Scope.ALL), join=_joined_scope),
)
"""In the order in which they are tried: resources most often make the difference."""
