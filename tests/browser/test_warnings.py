"""What an operator must know, in a real browser: workers that are lost, ignored failures, a certificate that ends."""

import json
import re
import shutil
from datetime import timedelta

import pytest

from tests.authorities import Authority, now
from tests.browser.dashboards import KINDS, example, free_port, many_policies
from tests.e2e.worker_process import WorkerProcess

WORKERS = """\
apiVersion: admission-gateway.dev/v1alpha1
kind: Worker
metadata: {{name: samples}}
spec: {{grpc: {{target: "dns:///{target}"}}}}
"""

LISTED = "Policies that cannot be called"


@pytest.fixture
def remote_worker():
    """The examples' worker as a process of its own, which the gateway does not start again."""
    worker = WorkerProcess(f"127.0.0.1:{free_port()}", "-m", "admission_worker.samples").ready()
    yield worker
    worker.stop()


def test_a_killed_worker_is_named_on_every_page(gateways, policies, remote_worker, open_dashboard, tmp_path):
    """A warning names it and counts its policies; Health and Policies have each; its last version is still shown."""
    folder = shutil.copytree(policies, tmp_path / "policies")
    (folder / "workers.yaml").write_text(WORKERS.format(target=remote_worker.target))
    served = gateways(folder)
    dashboard = open_dashboard(served, "?page=workers")
    page = dashboard.page
    row = dashboard.row("samples")
    row.get_by_text("healthy").wait_for()
    version = row.locator("td").nth(1).inner_text()
    assert version not in ("", "–")
    remote_worker.stop()
    row.get_by_text("cannot be reached", exact=True).wait_for()
    assert row.locator("td").nth(1).inner_text() == version
    assert "check that it runs" in row.inner_text()
    count = row.locator("td").nth(3).inner_text()
    banner = page.get_by_text(f"Worker samples cannot be reached; its {count} policies fail")
    assert banner.count() == 1
    dashboard.screenshot("worker-lost.png")
    assert dashboard.inaccessible() == []
    dashboard.open("?page=health")
    listed = page.get_by_role("region", name=LISTED)
    listed.wait_for()
    assert listed.locator("tbody tr").count() == int(count)
    assert "WORKER_UNAVAILABLE" in listed.inner_text()
    assert page.get_by_text("None: every policy is called as configured.").count() == 0
    assert page.get_by_role("region", name="Readiness checks").get_by_text("failed").count() == 0
    page.locator(".banner", has_text="Worker samples").get_by_role("link").click()
    page.get_by_role("heading", name="Workers").wait_for()
    dashboard.open("?page=policies")
    dashboard.row("no-privileged").get_by_text("cannot be called").wait_for()


def test_ignored_failures_have_a_time_and_say_nothing_of_the_request(gateways, open_dashboard, tmp_path):
    """When the last was ignored; whether the request passed is up to other policies."""
    (tmp_path / "policies.yaml").write_text("\n---\n".join(many_policies(2)))
    served = gateways(tmp_path, "--worker-startup-timeout", "0.1")
    secret = example("4")
    served.send(secret, **{name: {**secret["request"][name], **value} for name, value in KINDS.items()})
    dashboard = open_dashboard(served)
    banner = dashboard.page.locator(".banner", has_text="Fail-open")
    banner.wait_for()
    text = banner.inner_text()
    assert "2 failures were ignored since the start (failurePolicy Ignore), the last at " in text
    assert re.search(r"the last at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC: team-00/p0000.example.com \(1\)", text)
    assert "passed" not in text


@pytest.mark.parametrize(
    ("days", "said"), [(20, "The TLS certificate expires in 20 days"), (0, "The TLS certificate expires in 0 days")]
)
def test_a_certificate_that_ends_soon(gateways, policies, open_dashboard, tmp_path, days, said):
    """Fewer than 21 days before its end, a warning says how many are left, and Health when it ends."""
    ends = now() + timedelta(days=days, hours=12)
    cert_file, key_file = Authority().issue("localhost", "127.0.0.1", ends=ends).write(tmp_path)
    served = gateways(policies, "--tls-cert", cert_file, "--tls-key", key_file)
    dashboard = open_dashboard(served, "?page=health")
    dashboard.has(said)
    dashboard.has(f"in {days} days ({ends:%Y-%m-%d})")


def test_no_warning_three_weeks_before_the_end(gateways, policies, open_dashboard, tmp_path):
    """21 days are enough."""
    ends = now() + timedelta(days=21, hours=12)
    cert_file, key_file = Authority().issue("localhost", "127.0.0.1", ends=ends).write(tmp_path)
    dashboard = open_dashboard(gateways(policies, "--tls-cert", cert_file, "--tls-key", key_file), "?page=health")
    dashboard.has("in 21 days")
    assert dashboard.page.locator(".banner").count() == 0


@pytest.mark.parametrize(
    ("change", "badges"),
    [
        ({}, ["healthy"]),
        ({"versions": ["1.0.0", "1.1.0"]}, ["healthy", "two versions"]),
        ({"health": "undescribed", "versions": [], "problem": "why"}, ["not described"]),
        ({"health": "uncallable", "problem": "why"}, ["cannot be called"]),
        ({"health": "unknown", "connections": None, "versions": []}, ["no connection is kept"]),
    ],
)
def test_a_worker_has_its_badges(gateway, open_dashboard, change, badges):
    """Its health, and whether its replicas are in two versions."""
    dashboard = open_dashboard(gateway, "?page=workers")
    dashboard.row("samples").wait_for()
    state = f"{{...m.store.state, workers: [{{...m.store.state.workers[0], ...{json.dumps(change)}}}]}}"
    dashboard.page.evaluate(f"import('/ui/store.js').then((m) => m.receiver().state({state}))")
    assert dashboard.row("samples").locator(".badge").all_inner_texts() == badges
