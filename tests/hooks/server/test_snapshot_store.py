"""The objects of one snapshot: their form, their order, their filter, their limit."""

import json

import pytest

from gateway.hooks.configuration.model import ObjectBinding
from gateway.hooks.execution.snapshots import SnapshotError
from gateway.hooks.server.snapshot_store import SnapshotStore, SnapshotTooLargeError
from tests.hooks.scripts import limits, needs_jq


def store(limit=1000, **fields):
    return SnapshotStore(ObjectBinding(name="all", kind="Pod", **fields), limits(snapshot_bytes=limit))


async def items(store):
    return json.loads(await store.text())


async def test_objects_are_sorted_by_namespace_and_name():
    """Each as it was last put; what was removed is missing."""
    kept = store()
    for key, value in (("b/a", 1), ("a/b", 2), ("a/a", 3), ("c/c", 4), ("b/a", 5)):
        kept.put(key, b"%d" % value)
    kept.remove("c/c")
    assert await items(kept) == [{"object": 3}, {"object": 2}, {"object": 5}]


async def test_the_limit_is_of_all_objects_together():
    """What was replaced or removed does not count."""
    kept = store(limit=10)
    kept.put("a", b'"1234"')
    kept.put("a", b'"5678"')
    kept.remove("a")
    kept.put("b", b'"1234"')
    with pytest.raises(SnapshotTooLargeError, match=r"more than 10 bytes \(limit hook_snapshot_bytes\)"):
        kept.put("c", b'"1234"')


@pytest.mark.integration
@needs_jq
async def test_an_object_is_filtered_when_it_has_changed():
    """Without the objects, only the results are kept, and count."""
    kept = store(limit=150, jq_filter=".a", keeps_objects=False)
    for index in range(20):
        kept.put(f"{index:02}", b'{"a": %d, "b": "0123456789012345678901234567890123456789"}' % index)
        await kept.filter()
    assert not kept.changed.is_set()
    kept.put("03", b"{}")
    assert kept.changed.is_set()
    assert [each["filterResult"] for each in await items(kept)] == [0, 1, 2, None, *range(4, 20)]


@pytest.mark.integration
@needs_jq
async def test_an_object_that_cannot_be_filtered_is_an_error_until_it_changes():
    """It is named."""
    kept = store(jq_filter=".a | tonumber")
    kept.put("ns/fine", b'{"a": "1"}')
    kept.put("ns/broken", b'{"a": {}}')
    with pytest.raises(SnapshotError, match="jqFilter to ns/broken: object"):
        await kept.text()
    kept.put("ns/broken", b'{"a": 2}')
    assert [each["filterResult"] for each in await items(kept)] == [2, 1]
