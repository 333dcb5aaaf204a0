"""Policies are renamed, split and merged while clients create: the registration follows, and no create is lost."""

import signal

import pytest

from tests.e2e.policies import CONFIG_MAPS, judge, note
from tests.e2e.test_rollout import THIRD, Creates, labels
from tests.integration.running import until

NOTE = note("noted", text="yes", rules=CONFIG_MAPS)
TOLERANT = NOTE | {"failurePolicy": "Ignore"}
RENAMED = labels() | {"name": "renamed.test.example.com", "policy": "default-labels"}

CHANGES = {
    "the first policy is renamed": ([labels(), NOTE], [RENAMED, NOTE]),
    "an entry is split": ([labels(), NOTE], [labels(), TOLERANT]),
    "two entries are merged": ([labels(), TOLERANT], [labels(), NOTE]),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_an_outdated_registration_loses_no_create(cluster, change):
    """Each create has been judged by each policy once: by the old registration, and while the new one is applied."""
    before, after = CHANGES[change]
    gateway = await cluster.enforce(mutating=before, validating=[judge(rules=CONFIG_MAPS)])
    async with Creates(cluster) as creates:
        await creates.more(THIRD)
        cluster.write(mutating=after, validating=[judge(rules=CONFIG_MAPS)])
        gateway.process.send_signal(signal.SIGHUP)
        await until(lambda: gateway.metric("configuration_reloads_total", result="loaded") == 1)
        await creates.more(THIRD)
        await cluster.register(gateway.port)
        await creates.more(THIRD)
    assert creates.lost_none(), creates.failed[:3]
    # Of a name that is gone, the series has ended.
    for name in {each["name"] for each in before} & {each["name"] for each in after}:
        labelled = {"phase": "mutating", "policy": f"test/{name}", "verdict": "allow"}
        assert gateway.metric("policy_verdicts_total", **labelled) == creates.done
