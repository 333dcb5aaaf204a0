"""What the pages point at is there: files, headings, tests, flags, variables, metrics."""

import re

import click
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from admission_worker.command import command
from admission_worker.samples.sample_worker import worker
from gateway.cli.main import main
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.table import (
    BRIDGE,
    BRIDGE_PREFIX,
    CLUSTER,
    GATEWAY,
    HOOK_WORKER,
    HOOK_WORKER_PREFIX,
    PROCESSES,
    REDIS,
    WEBHOOK_PROBE,
)
from tests.docs.pages import ROOT, pages
from worker_conformance.command import main as kit

_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*[a-z0-9]")
_VARIABLE = re.compile(r"ADMISSION_(?:GATEWAY|WORKER)_[A-Z_]*[A-Z]")
_METRIC = re.compile(r"\badmission_gateway_[a-z_]+")
ROOMS = ("deploy", "docs", "gateway", "proto", "tests", "workers/python")
"""Where the files are that docs/architecture.md names."""

_TEST = re.compile(r"(tests/[\w/]+\.py)(?:::(\w+))?")

FOREIGN = {
    "amtool": {"--comment", "--duration"},
    "cargo": {"--release"},
    "curl": {"--cacert", "--data-binary"},
    "kube-apiserver": {
        "--admission-control-config-file",
        "--feature-gates",
        "--max-mutating-requests-inflight",
        "--tracing-config-file",
    },
    "benchmarks": {"--seconds", "--rounds", "--against"},
    "docker": {"--build", "--build-arg", "--file", "--format", "--platform", "--push", "--tag", "--volumes"},
    "etcd": {"--max-request-bytes"},
    "fuzz": {"--runs", "--seed"},
    "helm": {"--set", "--set-file", "--show-only"},
    "hooks": {"--config"},
    "kubectl": {
        "--cert",
        "--key",
        "--dry-run",
        "--from-file",
        "--ignore-not-found",
        "--server-side",
        "--since",
        "--tail",
        "--type",
    },
    "npm": {"--omit", "--prefix"},
    "pip": {"--require-hashes"},
    "prometheus": {"--enable-feature"},
    "redis-server": {"--port", "--save"},
    "shell_lib.sh": {"--required"},
}
"""Flags of other programs that the pages speak of."""

SUPERVISED = {"ADMISSION_WORKER_SUPERVISED"}
"""Variables that the supervisor sets for a worker, without a flag."""


@pytest.mark.parametrize("name", pages())
def test_every_link_leads_somewhere(name):
    """A relative link leads to a file of the project, and its anchor to a heading of that page."""
    page = pages()[name]
    broken = []
    for target in page.links():
        path, _, fragment = target.partition("#")
        if "://" in path:
            continue
        found = (ROOT / page.path.parent / path).resolve() if path else ROOT / page.path
        known = pages().get(found.relative_to(ROOT).as_posix()) if found.is_relative_to(ROOT) else None
        if not found.exists() or (fragment and (known is None or fragment not in known.anchors())):
            broken.append(target)
    assert not broken


def test_every_page_of_docs_is_linked():
    """Every page can be reached from README.md."""
    reached, waiting = set(), ["README.md"]
    while waiting:
        page = pages()[waiting.pop()]
        reached.add(page.name)
        for target in page.links():
            found = (ROOT / page.path.parent / target.partition("#")[0]).resolve()
            if found.is_relative_to(ROOT) and (name := found.relative_to(ROOT).as_posix()) in pages():
                waiting += [] if name in reached else [name]
    assert not pages().keys() - reached


@pytest.mark.parametrize("name", pages())
def test_every_test_that_is_named_exists(name):
    """A page that says where something is tested says so truly."""
    missing = []
    for path, function in _TEST.findall(pages()[name].text):
        file = ROOT / path
        if not file.is_file() or (
            function and not re.search(rf"^(async )?def {function}\(", file.read_text(), re.MULTILINE)
        ):
            missing.append(f"{path}::{function}")
    assert not missing


def _options(group: click.Command) -> list[click.Option]:
    commands = list(group.commands.values()) if isinstance(group, click.Group) else []
    own = [each for each in group.params if isinstance(each, click.Option)]
    return own + [option for each in commands for option in _options(each)]


@pytest.mark.parametrize("name", pages())
def test_every_flag_exists(name):
    """A flag that a page names is the gateway's, a worker's, the kit's, or that of a program that is not ours."""
    known = {flag for group in (main, command(worker), kit) for option in _options(group) for flag in option.opts}
    known |= {"--help", *(flag for flags in FOREIGN.values() for flag in flags)}
    assert not set(_FLAG.findall(pages()[name].text)) - known


@pytest.mark.parametrize("name", pages())
def test_every_environment_variable_exists(name):
    """A variable that a page names is that of a flag, or one that the gateway sets for a worker."""
    said = [option.envvar for option in _options(main)]
    variables = [name for each in said for name in ([each] if isinstance(each, str) else each or ())]
    gateways = {name for each in variables for name in ([each] if isinstance(each, str) else each or ())}
    workers = {f"ADMISSION_WORKER_{str(option.name).upper()}" for option in _options(command(worker))}
    assert not set(_VARIABLE.findall(pages()[name].text)) - gateways - workers - SUPERVISED


TEXTS = {name: page.text for name, page in pages().items()}
RULES = (ROOT / "deploy/prometheus/rules.yaml").read_text()


@pytest.mark.parametrize("text", [*TEXTS.values(), RULES], ids=[*TEXTS, "deploy/prometheus/rules.yaml"])
def test_every_metric_exists(text):
    """A metric that a page or an alert names is one that /metrics shows."""
    expositions = [
        made.exposition()[1].decode()
        for made in (
            Metrics((*GATEWAY, *CLUSTER, *WEBHOOK_PROBE, *REDIS, *PROCESSES)),
            Metrics(BRIDGE, prefix=BRIDGE_PREFIX),
            Metrics(HOOK_WORKER, prefix=HOOK_WORKER_PREFIX),
        )
    ]
    known = set()
    for family in text_string_to_metric_families("".join(text.removesuffix("# EOF\n") for text in expositions)):
        known |= {
            family.name,
            f"{family.name}_total",
            *(f"{family.name}_{part}" for part in ("bucket", "sum", "count")),
        }
    assert not set(_METRIC.findall(text)) - known


def test_every_file_of_the_architecture_exists():
    """By its path in the project, or its end."""
    names = set(re.findall(r"`([\w./-]+\.(?:py|js|yaml|proto))`", pages()["docs/architecture.md"].text))
    files = {f"/{path.relative_to(ROOT).as_posix()}" for room in ROOMS for path in (ROOT / room).rglob("*.*")}
    assert not {name for name in names if not any(file.endswith(f"/{name}") for file in files)}


def test_every_alert_has_its_runbook():
    """Each alert leads to its own section of the runbooks, and no section is left over."""
    rules = [rule for group in yaml.safe_load(RULES)["groups"] for rule in group["rules"] if "alert" in rule]
    assert {rule["labels"]["severity"] for rule in rules} == {"page", "ticket"}
    assert all(rule["annotations"]["summary"] for rule in rules)
    page = pages()["docs/runbooks.md"]
    sections = {f"{page.name}#{each}" for each in page.anchors() - {"runbooks"}}
    assert {rule["annotations"]["runbook_url"] for rule in rules} == sections


def test_every_runbook_says_what_to_do():
    """What it means for users, what to look at and how to mend it, in this order."""
    _, *sections = pages()["docs/runbooks.md"].text.split("\n## ")
    wrong = [
        text
        for text in sections
        if not re.search(r"\*\*Users\*\*.*\*\*Look\*\*.*\*\*mend\*\*", text, re.DOTALL | re.IGNORECASE)
    ]
    assert wrong == []


def test_every_log_line_of_a_runbook_exists():
    """What an operator is to look for in the log is what the gateway logs."""
    source = "".join(path.read_text() for path in (ROOT / "gateway").rglob("*.py"))
    lines = [
        line
        for found in re.findall(r"log lines?\s((?:`[^`]+`[\s,and]*)+)", pages()["docs/runbooks.md"].text)
        for line in re.findall(r"`([^`]+)`", found)
    ]
    assert len(lines) > 5
    assert [line for line in lines if f'"{" ".join(line.split())}' not in source] == []
