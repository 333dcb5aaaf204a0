"""What the pages show can be used as it stands: configurations load, objects are Kubernetes', programs run."""

import base64
import json
import ssl
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest
import yaml

from gateway.policies import Configuration, Phase, SourceText, load
from gateway.serving.app import Gateway, Settings
from gateway.sources import load_configuration
from tests.docs.pages import ROOT, blocks, named, pages

OURS = "admission-gateway.dev/v1alpha1"
REVIEWS = ROOT / "examples" / "reviews"
PHASES = {"MutatingWebhookConfiguration": Phase.MUTATING, "ValidatingWebhookConfiguration": Phase.VALIDATING}

YAML = blocks("yaml")
FAULTY = [block for block in YAML if block.before.endswith("mistakes -->")]
CONFIGURATIONS = [block for block in YAML if OURS in block.text and block not in FAULTY]
WEBHOOKS = [block for block in YAML if any(kind in block.text for kind in PHASES)]


def documents(text):
    """The documents of a YAML text."""
    return [each for each in yaml.safe_load_all(text) if each]


def loaded(objects) -> Configuration:
    """The objects, loaded as the gateway loads them; a Worker of any name that is not among them is added."""
    workers = {each["metadata"]["name"] for each in objects if each.get("kind") == "Worker"}
    used = {policy["worker"] for each in objects for policy in each.get("policies", [])} - workers
    added = [
        {
            "apiVersion": OURS,
            "kind": "Worker",
            "metadata": {"name": name},
            "spec": {"grpc": {"target": "localhost:50051"}},
        }
        for name in used
    ]
    text = "\n".join(json.dumps(each) for each in [*objects, *added])
    return load([SourceText(name="block.json", content=text.encode())])


@pytest.mark.parametrize("block", CONFIGURATIONS, ids=str)
def test_every_configuration_loads(block):
    """A configuration that a page shows has no mistake."""
    configuration = loaded(documents(block.text))
    assert (configuration.errors, configuration.fatal) == ((), False)


@pytest.mark.parametrize("block", FAULTY, ids=str)
def test_mistakes_are_told_as_shown(block):
    """A faulty configuration has exactly the mistakes that stand below it."""
    later = [each for each in pages()[block.page].blocks() if each.line > block.line]
    expected = next(each.text for each in later if each.language == "text")
    configuration = load([SourceText(name=block.name, content=block.text.encode())])
    assert "".join(f"{error}\n" for error in configuration.errors) == expected


def test_there_are_such_blocks():
    """The tests here are about something."""
    assert CONFIGURATIONS
    assert FAULTY
    assert WEBHOOKS


@pytest.mark.parametrize("block", [*blocks("yaml"), *blocks("json")], ids=str)
def test_every_block_is_what_it_says(block):
    """YAML is YAML with unique keys as far as we load it, JSON is JSON."""
    if block.language == "json":
        json.loads(block.text)
    else:
        assert documents(block.text)


@pytest.mark.parametrize("block", WEBHOOKS, ids=str)
def test_webhook_configurations_are_kubernetes(block):
    """A webhook configuration that a page shows passes Kubernetes' validation, and leads to a path that is served."""
    objects = [each for each in documents(block.text) if each["kind"] in PHASES]
    for each in objects:
        assert each["apiVersion"] == "admissionregistration.k8s.io/v1"
        for webhook in each["webhooks"]:
            client = webhook.pop("clientConfig")
            base64.b64decode(client["caBundle"], validate=True)
            path = "/mutate" if PHASES[each["kind"]] is Phase.MUTATING else "/validate"
            assert client["service"]["path"] == path
            assert set(webhook.pop("admissionReviewVersions")) <= {"v1", "v1beta1"}
            assert isinstance(webhook["timeoutSeconds"], int)
            webhook["worker"] = "any"
        each |= {
            "apiVersion": OURS,
            "kind": each["kind"].replace("Webhook", "Policy"),
            "policies": each.pop("webhooks"),
        }
    assert loaded(objects).errors == ()


@pytest.mark.parametrize("block", WEBHOOKS, ids=str)
def test_the_registration_leaves_time_for_the_examples(block):
    """timeoutSeconds is 1 + the sum (mutating, twice under IfNeeded) or the maximum (validating) of the examples'."""
    examples = load_configuration([ROOT / "examples" / "policies"])
    sums = sum(each.timeout * (2 if each.reinvocation_policy == "IfNeeded" else 1) for each in examples.mutating)
    worst = {Phase.MUTATING: sums, Phase.VALIDATING: max(each.timeout for each in examples.validating)}
    for each in documents(block.text):
        if each["kind"] in PHASES:
            assert [webhook["timeoutSeconds"] for webhook in each["webhooks"]] == [1 + worst[PHASES[each["kind"]]]]


async def served(folder, path, review="1-pod-create.json"):
    """What a gateway that serves a configuration answers, by path, to one of the example reviews."""
    settings = Settings(
        listen=("127.0.0.1", 0), admin_listen=("127.0.0.1", 0), tls_dev_dir=folder / "tls", worker_wait_seconds=20
    )
    gateway = Gateway(load_configuration([path]), settings)
    (host, port), _ = await gateway.start()
    try:
        context = ssl.create_default_context(cafile=gateway.certificates.ca_file)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
            answers = {}
            for phase in ("mutate", "validate"):
                headers = {"Content-Type": "application/json"}
                url = f"https://{host}:{port}/{phase}?timeout=10s"
                async with session.post(url, data=(REVIEWS / review).read_bytes(), headers=headers) as response:
                    answers[phase] = await response.json()
            return answers
    finally:
        await gateway.stop(drain=False)


async def test_the_policy_of_the_readme_works(tmp_path):
    """Its two files, put beside each other and served, give the answer that stands below them."""
    for name in ("labels.py", "policies.yaml"):
        (tmp_path / name).write_text(named("README.md", name))
    answers = await served(tmp_path, tmp_path / "policies.yaml")
    (shown,) = [json.loads(block.text) for block in pages()["README.md"].blocks() if block.language == "json"]
    assert answers["validate"] == shown


async def test_the_policies_of_the_guide_work(tmp_path):
    """The files of docs/write-a-policy.md, served, deny and change as they say."""
    for name in ("tiers.py", "tiers.yaml"):
        (tmp_path / name).write_text(named("docs/write-a-policy.md", name))
    answers = await served(tmp_path, tmp_path / "tiers.yaml")
    status = answers["validate"]["response"]["status"]
    assert (status["code"], status["message"]) == (403, "label 'tier' must be one of frontend, backend")
    patch = json.loads(base64.b64decode(answers["mutate"]["response"]["patch"]))
    assert patch == [{"op": "add", "path": "/metadata/labels/tier", "value": "frontend"}]


def test_the_tests_of_the_guide_pass(tmp_path, monkeypatch):
    """The tests that docs/write-a-policy.md shows pass with the policies that it shows."""
    (tmp_path / "tiers.py").write_text(named("docs/write-a-policy.md", "tiers.py"))
    monkeypatch.syspath_prepend(tmp_path)
    try:
        scope = {}
        exec(named("docs/write-a-policy.md", "test_tiers.py"), scope)  # noqa: S102 - our own page
        tests = [value for name, value in scope.items() if name.startswith("test_")]
        assert tests
        for test in tests:
            test()
    finally:
        sys.modules.pop("tiers", None)


async def test_the_message_of_denied_is_that_of_the_examples(tmp_path):
    """What docs/denied.md shows is what the example policies say to a privileged pod without labels."""
    answers = await served(tmp_path, ROOT / "examples" / "policies", "7-pod-privileged.json")
    text = pages()["docs/denied.md"].text
    assert all(line in text for line in answers["validate"]["response"]["status"]["message"].splitlines())


def test_the_demonstration_says_what_the_readme_shows(tmp_path):
    """Each line of the excerpt of `make run` is one that it prints."""
    command = [Path(sys.executable).parent / "admission-gateway", "demo", "--once", "--tls-dev-dir", tmp_path]
    addresses = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]
    printed = subprocess.run([*command, *addresses], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    excerpt = next(block.text for block in pages()["README.md"].blocks() if block.text.startswith(" 1  "))
    assert not set(excerpt.splitlines()) - set(printed.splitlines())
