"""Generated sets of mutating policies, and what kube-apiserver makes of an object behind their entries.

Each policy applies the JSON Patch in one annotation of the object. A set is for objects with its label. Which policies
share an entry, and what is registered for it, is taken from the registration; all else is a plain loop of our own.
"""

import random
from dataclasses import dataclass

import jsonpatch
import jsonpointer

from tests.e2e.cluster import UNTOUCHED
from tests.e2e.objects import lasting
from tests.e2e.policies import THINGS
from tests.integration.running import PODS, policy
from tests.patching.values import applied_by_the_library

KEYS = ("k0", "k1", "k2", "k3")
"""The annotations that have patches; a set has a policy for some of them."""

SET, TEAM, TIER = (f"e2e.example.com/{name}" for name in ("set", "team", "tier"))
"""Labels: of the set that an object is for; which policies add, and select by; of a namespace."""


def _members(value):
    if isinstance(value, dict):
        return value
    raise TypeError(value)


CONDITIONS = {
    f"'{TEAM}' in object.metadata.labels": lambda obj: TEAM in obj["metadata"]["labels"],
    f"!('{TEAM}' in object.metadata.labels)": lambda obj: TEAM not in obj["metadata"]["labels"],
    f"object.metadata.labels['{TEAM}'] == 'a'": lambda obj: obj["metadata"]["labels"][TEAM] == "a",
    "has(object.spec.a)": lambda obj: "a" in _members(obj["spec"]),
    "!has(object.spec.volumes)": lambda obj: "volumes" not in _members(obj["spec"]),
    "object.metadata.name.endsWith('1')": lambda obj: obj["metadata"]["name"].endswith("1"),
}
"""What a condition is in Python: a KeyError or TypeError where CEL has an error."""

OBJECT_SELECTORS = ({}, {}, {}, {"operator": "Exists"}, {"operator": "DoesNotExist"})
NAMESPACE_SELECTORS = (None, None, None, "Exists", "DoesNotExist")


class RefusedError(Exception):
    """The object is refused, with one of these ``codes``."""

    def __init__(self, *codes):
        super().__init__(codes)
        self.codes = codes


class PolicySet:
    """The policies of one seed, one to four."""

    def __init__(self, seed):
        self.name = f"s{seed:03d}"
        self._random = random.Random(seed)
        # Policies of neighbouring sets share no entry.
        self._match_policy = ("Exact", "Equivalent")[seed % 2]
        self._alike = self._random.random() < 0.5
        self.keys = self._random.sample(KEYS, self._random.randint(1, len(KEYS)))
        self.policies = [self._policy(key) for key in self.keys]

    def _policy(self, key):
        pick = self._random.choice
        selected = [{"key": SET, "operator": "In", "values": [self.name]}]
        if not self._alike and (selector := pick(OBJECT_SELECTORS)):
            selected.append({"key": TEAM} | selector)
        fields = {"objectSelector": {"matchExpressions": selected}, "matchPolicy": self._match_policy}
        if not self._alike and (operator := pick(NAMESPACE_SELECTORS)):
            fields["namespaceSelector"] = {"matchExpressions": [{"key": TIER, "operator": operator}]}
        conditions = self._random.sample(sorted(CONDITIONS), pick([0, 0, 1, 1, 2]))
        fields["matchConditions"] = [{"name": f"c{at}", "expression": each} for at, each in enumerate(conditions)]
        fields["failurePolicy"] = pick(["Fail", "Ignore", "Ignore", "Ignore"])
        fields["reinvocationPolicy"] = pick(["Never", "IfNeeded"])
        fields["isolate"] = self._random.random() < 0.3
        called = {"worker": "configured", "policy": "patch", "settings": {"key": key}}
        return policy(f"{key}-{self.name}", rules=[*THINGS, PODS], **called, **fields)


@dataclass
class Step:
    """A policy in an entry, or an entry.

    ``matches(obj)`` may raise LookupError or TypeError, as a condition does. ``apply(obj)`` is the object afterwards,
    and whether there was a patch: kube-apiserver may normalize away all of it.
    """

    matches: object
    apply: object
    fails: bool
    is_reinvoked: bool


async def walk(steps, obj, *, typed=False):
    """What the steps make of an object: two rounds, as kube-apiserver's, of which the second calls what is marked.

    Marked are the IfNeeded ones that were called before a change; matching comes before the mark. For objects of its
    own types, kube-apiserver counts the first patch of a round as a change, whatever it changes. Raises RefusedError.
    """
    called, marked, changed = set(), set(), False
    for number in range(2):
        first = typed
        for at, step in enumerate(steps):
            try:
                matched = step.matches(obj)
            except (LookupError, TypeError):
                if step.fails:
                    raise RefusedError(403, 500) from None
                continue
            if not matched or (number and at not in marked):
                continue
            after, patched = await step.apply(obj)
            if after != obj or (patched and first):
                obj, changed, marked, called = after, True, marked | called, set()
            first = first and not patched
            if step.is_reinvoked:
                called.add(at)
        if not changed:
            break
    return obj


class Registered:
    """The entries of a registration.

    ``entries`` are those of the gateway, ``webhooks`` what is registered for each, ``sources`` the policies by name.
    """

    def __init__(self, client, entries, webhooks, sources):
        self._client = client
        self._webhooks = {each["name"]: each for each in webhooks}
        self._entries = [(each.name, [sources[one.name] for one in each.policies]) for each in entries]

    async def predicted(self, obj, texts, tiers):
        """The codes of which a create has one, and what is stored: without webhooks, of what the policies make of it.

        ``texts`` are the patches by key, ``tiers`` the labels of its namespace.
        """
        reply = await self._stored(obj)
        steps = [self._entry(*each, texts, tiers) for each in self._entries]
        try:
            reply = await self._stored(await walk(steps, lasting(reply.body), typed=obj["kind"] == "Pod"))
        except RefusedError as refused:
            return refused.codes, None
        return (reply.code,), reply.body

    async def _stored(self, obj):
        here = obj["metadata"] | {"namespace": UNTOUCHED}
        return await self._client.create(obj | {"metadata": here}, dryRun="All")

    def _entry(self, name, policies, texts, tiers):
        webhook, first = self._webhooks[name], policies[0]

        def matches(obj):
            labels = obj["metadata"].get("labels", {})
            if not selects(webhook["objectSelector"], labels) or not selects(webhook["namespaceSelector"], tiers):
                return False
            return "matchConditions" not in webhook or any_meets(policies, obj)

        async def apply(obj):
            after = await walk([_policy(each, texts, tiers) for each in policies], obj)
            if after == obj:
                return obj, False
            reply = await self._stored(after)
            if reply.code != 201:
                # It is refused in the end, unless a later policy refuses it first.
                raise RefusedError(403, 422, 500)
            return lasting(reply.body), True

        return Step(matches, apply, first["failurePolicy"] == "Fail", first["reinvocationPolicy"] == "IfNeeded")


def _policy(source, texts, tiers):
    fails = source["failurePolicy"] == "Fail"
    selectors = source["objectSelector"], source.get("namespaceSelector", {})

    def matches(obj):
        labels = obj["metadata"].get("labels", {})
        return selects(selectors[0], labels) and selects(selectors[1], tiers) and meets(source, obj)

    async def apply(obj):
        try:
            return applied_by_the_library(obj, texts.get(source["settings"]["key"], "[]").encode()), True
        except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError):
            if fails:
                raise RefusedError(403, 500) from None
            return obj, False

    return Step(matches, apply, fails, source["reinvocationPolicy"] == "IfNeeded")


def selects(selector, labels):
    """Whether a selector with these operators matches; other keys are the harness' own, and always match."""
    same = selector.get("matchLabels", {})
    wanted = [{"key": key, "operator": "In", "values": [value]} for key, value in same.items()]
    for each in (*wanted, *selector.get("matchExpressions", ())):
        if each["key"] not in {SET, TEAM, TIER}:
            continue
        there = each["key"] in labels
        if each["operator"] == "In":
            there = labels.get(each["key"]) in each["values"]
        if there is (each["operator"] == "DoesNotExist"):
            return False
    return True


def meets(source, obj):
    """The policy's conditions, as kube-apiserver: false if any is, else an error if any is. Raises the error."""
    error = None
    for each in source["matchConditions"]:
        try:
            if not CONDITIONS[each["expression"]](obj):
                return False
        except (LookupError, TypeError) as raised:
            error = raised
    if error is not None:
        raise error
    return True


def any_meets(policies, obj):
    """Whether any policy's conditions are true; else an error if any has one. Raises the error."""
    error = None
    for each in policies:
        try:
            if meets(each, obj):
                return True
        except (LookupError, TypeError) as raised:
            error = raised
    if error is not None:
        raise error
    return False
