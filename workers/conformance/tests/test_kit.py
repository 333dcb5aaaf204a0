"""The kit's options, reports, quotes and exit codes."""

import json
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

import worker_conformance
from worker_conformance.checks import CHECKS
from worker_conformance.command import main
from worker_conformance.findings import NotCheckableError, shown
from worker_conformance.proto.admission.worker.v1 import worker_pb2
from worker_conformance.results import Report, schema
from workers.conformance.tests.reference_judging import VALIDATING
from workers.conformance.tests.reference_serving import Worker, serving

ROOT = Path(__file__).parents[3]


def invoked(*arguments):
    return CliRunner().invoke(main, arguments)


async def run_process(*arguments):
    """Run the command beside a worker in this process; return exit code, standard output, standard error."""
    import asyncio  # noqa: PLC0415 - of this test alone

    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "worker_conformance", *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, errors = await process.communicate()
    return process.returncode, out.decode(), errors.decode()


# ------------------------------------------------------------------------------------------- checks


def test_checks_have_different_names():
    """Check names are unique."""
    names = [check.name for check in CHECKS]
    assert len(set(names)) == len(names)


def _words(text):
    return " ".join(text.replace("//", " ").split())


SOURCES = {
    name: _words((ROOT / name).read_text(encoding="utf-8"))
    for name in ("proto/admission/worker/v1/worker.proto", "workers/README.md")
}


@pytest.mark.parametrize("check", CHECKS, ids=[check.name for check in CHECKS])
def test_each_check_quotes_the_contract(check):
    """The sentence that a check quotes is in the contract, word for word."""
    if check.contract.source in SOURCES:
        assert _words(check.contract.text) in SOURCES[check.contract.source]


def test_each_sentence_ends():
    """Each check describes its property in a sentence that fits a line."""
    assert [check.name for check in CHECKS if not check.sentence.endswith(".") or len(check.sentence) > 110] == []


def test_the_messages_are_those_of_the_contract(tmp_path):
    """The generated code equals protoc's output for proto/."""
    protoc = [sys.executable, "-m", "grpc_tools.protoc", f"-I{ROOT / 'proto'}", f"--python_out=pyi_out:{tmp_path}"]
    subprocess.run([*protoc, "admission/worker/v1/worker.proto"], check=True, capture_output=True)
    folder = Path(str(files(worker_conformance))) / "proto/admission/worker/v1"
    for name in ("worker_pb2.py", "worker_pb2.pyi"):
        assert (tmp_path / "admission/worker/v1" / name).read_text() == (folder / name).read_text()


# ------------------------------------------------------------------------------------------ reports


def test_the_list_shows_every_check():
    """--list shows each check with its sentence."""
    result = invoked("--list")
    assert result.exit_code == 0
    for check in CHECKS:
        assert f"{check.name}\n    {check.sentence}\n" in result.output


def test_the_schema_of_reports_is_committed():
    """report.schema.json is the JSON Schema of the report."""
    committed = (files(worker_conformance) / "report.schema.json").read_bytes()
    assert committed == schema()
    assert invoked("--schema").output.encode() == schema()


async def test_a_json_report_is_complete():
    """-o json writes one document with the worker, each check and the summary, and nothing else."""
    async with serving(Worker()) as address:
        code, out, errors = await run_process(
            "--target", address, "--only", "describe.*", "--only", "tls.*", "-o", "json"
        )
    assert (code, errors) == (0, "")
    report = msgspec.json.decode(out, type=Report)
    assert report.api_version == "conformance.admission-gateway.dev/v1"
    assert (report.worker.name, report.worker.version) == ("reference", "1.2.3")
    assert [result.name for result in report.checks] == [
        c.name for c in CHECKS if c.name.startswith(("describe", "tls"))
    ]
    assert report.summary.passed + report.summary.skipped == len(report.checks)
    assert all(result.reason for result in report.checks if result.outcome == "skipped")
    assert json.loads(out)["checks"][0]["contract"]["sentence"]


class Nameless(Worker):
    version = ""


async def test_a_text_report_shows_failures_in_full():
    """A failed check has exit code 1, its line, and at the end expected, observed and the contract's sentence."""
    async with serving(Nameless()) as address:
        code, out, _ = await run_process(
            "--target", address, "--only", "describe.is-complete", "--only", "describe.is-stable"
        )
    assert code == 1
    assert "FAILED   describe.is-complete" in out
    assert "ok       describe.is-stable" in out
    assert "  expected  a version" in out
    assert "  observed  DescribeResponse {" in out
    assert '  contract  "It must change whenever a verdict may change' in out
    assert out.splitlines()[-1].startswith("worker reference  at 127.0.0.1:")
    assert "\x1b[" not in out


# ---------------------------------------------------------------------------------- what cannot run


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give either --target ADDRESS"),
        (("--target", "a:1", "--", "b"), "give either --target ADDRESS"),
        (("--target", "a:1", "--probes"), "--probes needs a COMMAND"),
        (("--only", "no.such", "--list"), "no such check"),
        (("--target", "unix:/no/such/socket", "--patience", "0.2"), "no process accepts connections"),
        (("--", "/no/such/command"), "cannot be run"),
        (("--", sys.executable, "-c", "raise SystemExit('gone')"), "ended with exit code 1"),
        (("--server-name", "a", "--target", "a:1"), "need --tls-ca"),
        (("--calls", "/no/such/file", "--target", "a:1"), "--calls /no/such/file: No such file"),
        (("--calls", "a.yaml", "--samples", "--target", "a:1"), "either --calls FILE or --samples"),
    ],
)
def test_a_run_that_cannot_start_is_an_error(arguments, message):
    """The kit exits with code 2 and one line with the reason."""
    result = invoked(*arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert result.output.startswith("admission-worker-conformance: ")


# -------------------------------------------------------------------------------------------- needs


class WithoutProbes(Worker):
    def describe(self, request):
        described = super().describe(request)
        kept = [policy for policy in described.policies if policy.name == "plain"]
        del described.policies[:]
        described.policies.extend(kept)
        return described


class WithoutStream(WithoutProbes):
    def handlers(self):
        (worker, health) = super().handlers()
        worker._method_handlers = {key: value for key, value in worker._method_handlers.items() if "Stream" not in key}
        return (worker, health)


async def test_a_worker_without_probes_and_stream_is_complete(checked):
    """A worker with only Review passes, and each skipped check reports what it needs."""
    names = {check.name for check in CHECKS} - {"connections.keepalive"}  # which takes 15 s
    results = (await checked(WithoutStream(), names)).values()
    assert [result for result in results if result.outcome in {"failed", "broken"}] == []
    reasons = {result.reason for result in results if result.outcome == "skipped"}
    assert any("ReviewStream" in reason for reason in reasons)
    assert any("--conformance" in reason for reason in reasons)
    assert sum(result.outcome == "passed" for result in results) > 25


async def test_an_error_of_the_kit_is_not_the_workers(checked, monkeypatch):
    """A check that raises an unexpected error is broken, and the other checks run."""

    class Absurd(Worker):
        def describe(self, request):
            described = super().describe(request)
            described.policies.add(name="x", phases=[VALIDATING])
            return described

    from worker_conformance.checks import describe  # noqa: PLC0415 - of this test alone

    monkeypatch.setattr(describe, "errors", lambda _: 1 / 0)
    results = await checked(Absurd(), {"describe.schemas-parse", "describe.is-stable"})
    assert results["describe.schemas-parse"].outcome == "broken"
    assert "ZeroDivisionError" in results["describe.schemas-parse"].reason
    assert results["describe.is-stable"].outcome == "passed"


def test_values_are_shown_short():
    """A report shows only the beginning of a large value."""
    outcome = worker_pb2.Outcome(deny=worker_pb2.Deny(message="x" * 10_000_000))
    assert len(shown(outcome)) < 1000
    assert issubclass(NotCheckableError, Exception)
