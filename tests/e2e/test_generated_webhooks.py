"""Webhooks that are registered directly, and the same behind the gateway: one outcome.

HYPOTHESIS_PROFILE=long takes ten times as many sets.
"""

import asyncio
import json
import os

import pytest

from tests.e2e.generated import WebhookServer, WebhookSet, register_three_ways
from tests.e2e.objects import config_map, lasting, pod
from tests.e2e.policies import patch
from tests.integration.running import policy

SETS = 500 if os.environ.get("HYPOTHESIS_PROFILE") == "long" else 50

SIDE_BY_SIDE = 50
"""Sets that one registration has: kube-apiserver takes no object of more than 3 MB, nor etcd of 1.5 MB."""

AT_ONCE = 8

FAILED = 500

_OF_THE_GATEWAY = "could not judge this request"
"""A warning under Ignore: kube-apiserver itself ignores silently."""


@pytest.fixture
async def server(ca_file):
    async with WebhookServer((ca_file.with_name("tls.crt"), ca_file.with_name("tls.key"))) as started:
        yield started


async def outcome(cluster, where, name, made):
    """What becomes of one object, created and then changed, in a namespace."""
    annotations, data, labels = made
    obj = config_map(name, namespace=where, annotations=annotations, data=data, labels=labels)
    replies = [await cluster.client.create(obj)]
    if replies[0].code == 201:
        changed = obj | {"data": data | {"later": "added"}}
        replies.append(await cluster.client.send("PUT", f"/api/v1/namespaces/{where}/configmaps/{name}", changed))
    return replies


def all_of(reply):
    """All that a user sees of a reply, but for what docs/differences.md lists of every policy: failures have a reason
    code, and those that are ignored are warnings.
    """
    warnings = sorted(each for each in reply.warnings if _OF_THE_GATEWAY not in each)
    if reply.code == FAILED:
        return reply.code, reply.body["reason"], reply.message[reply.message.index("failed calling") :], warnings
    if reply.code >= 400:
        details = {name: value for name, value in reply.body.get("details", {}).items() if name != "uid"}
        return reply.code, reply.body["reason"], reply.message, details, warnings
    return reply.code, lasting(reply.body), warnings


def less_texts(reply):
    """The same without the texts of refusals, which name an entry and each of its policies."""
    return reply.code if reply.code >= 400 else all_of(reply)


def less_refusals(reply):
    """The same without which of several refusals is shown."""
    return "refused" if reply.code >= 400 else all_of(reply)


def differences(found, index, seen):
    """What is seen directly, and in one of the other namespaces, where that is not the same; by name of the object."""
    pairs = {name: [[seen(reply) for reply in replies[each]] for each in (0, index)] for name, replies in found.items()}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


@pytest.mark.parametrize("first", range(0, SETS, SIDE_BY_SIDE))
async def test_the_outcome_is_that_of_webhooks_registered_directly(cluster, authority, server, first):
    """Of creating an object, and of changing it: code, reason, message, warnings, and what is stored."""
    sets = [WebhookSet(seed) for seed in range(first, first + SIDE_BY_SIDE)]
    native = [obj for each in sets for obj in each.native(authority, server.port)]
    where = await register_three_ways(cluster, server, native)
    limit = asyncio.Semaphore(AT_ONCE)

    async def check(name, made):
        async with limit:
            return [await outcome(cluster, each, name, made) for each in where]

    cases = {f"{each.name}-{index}": made for each in sets for index, made in enumerate(each.objects)}
    found = dict(zip(cases, await asyncio.gather(*(check(*case) for case in cases.items())), strict=True))
    assert differences(found, 1, all_of) == {}
    later = tuple(each.name for each in sets if each.may_match_later or each.may_err_later)
    twice = tuple(each.name for each in sets if each.may_refuse_twice)
    comparable = {name: replies for name, replies in found.items() if not name.startswith(later)}
    once = {name: replies for name, replies in comparable.items() if not name.startswith(twice)}
    assert differences(once, 2, less_texts) == {}
    assert differences(comparable, 2, less_refusals) == {}
    codes = [reply.code for replies in found.values() for reply in replies[0]]
    assert {200, 201, 418, 500} <= set(codes), "the sets are too tame to show anything"


def noting(key, **fields):
    return policy(key, worker="configured", policy="note", settings={"key": key, "text": "judged"}, **fields)


@pytest.mark.parametrize("isolate", [True, False])
async def test_a_policy_that_matches_only_later_is_judged_when_its_entry_is_called_again(cluster, isolate):
    """kube-apiserver reinvokes no webhook that it did not call; an entry it did call."""
    there = [{"name": "there", "expression": "object.metadata.?annotations[?'later'].hasValue()"}]
    first = noting("first", reinvocationPolicy="IfNeeded", matchConditions=there, isolate=isolate)
    always = noting("always", reinvocationPolicy="IfNeeded")
    await cluster.enforce(mutating=[first, always, noting("later", isolate=True)])
    reply = await cluster.create(pod())
    assert ("first" in reply.body["metadata"]["annotations"]) is not isolate


@pytest.mark.parametrize("isolate", [True, False])
async def test_an_error_in_the_second_round_refuses_if_it_is_one_of_the_registered_condition(cluster, isolate):
    """kube-apiserver evaluates conditions again before it looks whether the webhook is to be called again."""

    def condition(expression):
        return {"matchConditions": [{"name": "c", "expression": expression}], "isolate": isolate}

    named = noting("named", **condition("object.metadata.name == 'p'"))
    erring = noting("erring", **condition("object.metadata.annotations['d'] != 'x'"))
    await cluster.enforce(mutating=[named, erring, patch("removing", isolate=True)])
    remove = json.dumps([{"op": "remove", "path": "/metadata/annotations/d"}])
    reply = await cluster.create(pod(annotations={"d": "y", "removing": remove}))
    assert reply.code == (403 if isolate else 201), reply
