"""``admission-gateway bridge``: what it refuses to start with, and that each of its flags is a variable."""

import base64
import os
import socket

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.cli.main import main
from gateway.telemetry.labels import ConsumerEvent
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.table import BRIDGE, BRIDGE_PREFIX
from tests.docs.pages import ROOT


@pytest.fixture
def flags(tmp_path):
    """Flags with which it would start; some of them changed, None is left out."""

    def made(**changed):
        keys = tmp_path / "queue.keys"
        keys.write_text(base64.b64encode(os.urandom(32)).decode())
        flags = {
            "--queue": "admission:test",
            "--key-file": str(keys),
            "--redis": "redis://127.0.0.1:1",
            "--worker": "unix:w.sock",
        }
        flags |= {"--" + name.replace("_", "-"): value for name, value in changed.items()}
        return ("bridge", *(word for flag, value in flags.items() if value is not None for word in (flag, value)))

    return made


WRONG = {
    "a queue with a blank": ({"queue": "a b"}, "--queue", "without blanks and braces"),
    "a queue with braces": ({"queue": "{a}"}, "--queue", "without blanks and braces"),
    "a queue in two words": ({"queue": "q q"}, "--queue", 'Invalid value: "q q"'),
    "no queue": ({"queue": None}, "--queue", "Missing option"),
    "no key file": ({"key_file": None}, "--key-file", "Missing option"),
    "no Redis": ({"redis": None}, "--redis", "Missing option"),
    "a Redis that is none": ({"redis": "http://secret@h"}, "--redis", "no known scheme"),
    "no worker": ({"worker": None}, "--worker", "Missing option"),
    "a worker that is none": ({"worker": "nowhere"}, "--worker", "nowhere"),
    "too many connections": ({"worker_connections": "1000"}, "--worker-connections", "between 1 and 64"),
    "a key without its certificate": ({"worker_tls_key": "k.pem"}, "--worker-tls-cert", "Required value"),
    "a server name that is none": ({"worker_tls_server_name": "10.0.0.1"}, "--worker-tls-server-name", "DNS name"),
    "nothing in flight": ({"in_flight": "0"}, "--in-flight", "x>=1"),
}


@pytest.mark.parametrize("name", WRONG)
def test_flags_that_cannot_be(run, flags, name):
    """Exit code 2, and the flag and what is expected are named; nothing of a URL is repeated."""
    changed, flag, message = WRONG[name]
    done = run(*flags(**changed))
    assert done.code == 2
    assert flag in done.err
    assert message.replace("x>=1", "1<=x") in done.err
    assert "secret" not in done.err
    assert done.err.count("Invalid value") <= 1


@pytest.mark.parametrize("content", [None, "", "no key\n", base64.b64encode(b"short").decode()])
def test_a_key_file_that_cannot_be_used(run, flags, tmp_path, content):
    """Exit code 2, and the file is named, not what stands in it."""
    file = tmp_path / "bad.keys"
    if content is not None:
        file.write_text(content)
    done = run(*flags(key_file=str(file)))
    assert done.code == 2
    assert str(file) in done.err
    assert not content or content.strip() not in done.err


def test_an_address_that_is_taken(run, flags):
    """Exit code 2."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run(*flags(admin_listen=f"127.0.0.1:{port}"))
    assert done.code == 2
    assert str(port) in done.err


def test_every_option_of_bridge_has_its_variable():
    """Each flag, every limit included, is an environment variable of the same name."""
    for option in main.commands["bridge"].params:
        if option.name != "help":
            assert option.envvar == f"ADMISSION_GATEWAY_{option.name.upper()}"


def test_its_metrics_are_documented():
    """docs/reference/metrics.md names all of them, and every event, and no others."""
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    section = page.split("\n## Metrics of a bridge\n")[1].split("\n## ")[0]
    rows = {line.split("`")[1] for line in section.splitlines() if line.startswith("| `")}
    text = Metrics(BRIDGE, prefix=BRIDGE_PREFIX).exposition()[1].decode()
    families = text_string_to_metric_families(text)
    metrics = {family.name + ("_total" if family.type == "counter" else "") for family in families}
    assert rows - {"event"} == metrics | set(ConsumerEvent)
