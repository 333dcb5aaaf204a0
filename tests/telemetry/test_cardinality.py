"""Whatever senders of reviews write, and workers answer, decides nothing about the number of series."""

from math import prod

from gateway.engine.decision import ANSWERED
from gateway.policies.model import Phase
from gateway.telemetry.events import CONFIGURED, Kind
from gateway.telemetry.table import CLUSTER, GATEWAY, PREFIX, REDIS, WEBHOOK_PROBE
from tests.integration.client import post
from tests.samples import sample_value
from tests.telemetry.hostile_reviews import MOST_BYTES, HostileGateway, configuration, strangers

REVIEWS = 300


async def test_no_word_of_a_request_or_an_answer_becomes_a_label():
    """Of users, kinds, namespaces, uids, traces, messages, versions: every label value is known beforehand."""
    gateway = HostileGateway()
    await gateway.start()
    await gateway.decide(REVIEWS)
    assert strangers(gateway.metrics, gateway.loaded) == []
    for phase in Phase:
        labels = {"phase": phase.value}
        decided = [
            sample_value(gateway.metrics, f"{PREFIX}reviews_total", labels | {"outcome": each}) for each in ANSWERED
        ]
        assert all(decided), "reviews end in every way"
    for form in (False, True):
        assert len(gateway.metrics.exposition(openmetrics=form)[1]) < most_bytes(gateway.loaded) < MOST_BYTES


def most_bytes(loaded):
    """What /metrics can have, by the table and the names of the configuration alone."""
    number = {
        "policy": len(loaded.policies()),
        "entry": len(list(loaded.entry_names())) + 1,
        "worker": len(loaded.configuration.workers),
        "version": 1,
        "python": 1,
    }
    line = 400
    lines = 0
    for metric in (*GATEWAY, *CLUSTER, *WEBHOOK_PROBE, *REDIS):
        # A policy and an entry have one phase.
        per_name = {"phase"} if metric.labels.keys() & {"policy", "entry"} else set()
        series = prod(
            number[label] if values is CONFIGURED else 1 if label in per_name else len([*values, "other"])
            for label, values in metric.labels.items()
        )
        lines += 2 + series * (len(metric.buckets) + 3 if metric.kind is Kind.HISTOGRAM else 1)
    return lines * line


async def test_no_path_or_header_becomes_a_label(gateway):
    """Of a client that calls paths, entries, methods, types and tokens of its own."""
    known = configuration()
    async with gateway(known) as served:
        metrics = served.gateway.metrics
        before = metrics.exposition()[1].count(b"\n")
        client = await served.client()
        for number in range(REVIEWS):
            path = (f"/mutate/e{number}", f"/validate/e{number}/r{number}", f"/{number}", f"/mutate?timeout={number}x")
            fields = (("Content-Type", f"x/{number}"), ("Authorization", f"Bearer {number}"), (f"X-{number}", "y"))
            answer = await client.send(post(b"{}", path[number % 4], *fields))
            assert answer.status >= 400
        assert strangers(metrics, served.gateway._loaded) == []
        # Those of this process exist once they are shown.
        observed = 6 * 3 + 1
        assert metrics.exposition()[1].count(b"\n") <= before + observed


async def test_a_series_of_many_traces_has_one_exemplar_for_each_bucket():
    """The last ones: memory does not grow with traces."""
    gateway = HostileGateway()
    await gateway.start()
    await gateway.decide(REVIEWS)
    text = gateway.metrics.exposition(openmetrics=True)[1].decode().splitlines()
    exemplars = [line for line in text if "trace_id" in line]
    assert exemplars
    assert len(exemplars) == len({line.partition(" # ")[0].rpartition(" ")[0] for line in exemplars})
