"""Existing webhooks behind the whole gateway: native configurations and workers of our own kinds, over real HTTPS."""

import asyncio
import base64
import json
import subprocess

import pytest
from click.testing import CliRunner

from gateway.cli.main import main
from gateway.engine.answer_source import Source
from gateway.policies.configuration import load
from gateway.policies.decoding.texts import SourceText
from gateway.transports.limits import TransportLimits
from gateway.transports.transport_config import TransportConfig
from gateway.transports.webhook.client_credentials import Credentials, Users, WebhookAccess
from gateway.transports.webhook.host_overrides import read_overrides
from tests.authorities import Authority
from tests.integration.client import AsyncClient, Client, message, post
from tests.integration.process import COMMAND, WAIT_SECONDS
from tests.integration.running import PODS, policy, until
from tests.traffic import recording
from tests.transports.webhook.servers import NAME, Hook, allows, http, json_patch, review, served, server_context

CREATE = recording("pod-create.1v")
MUTATING = recording("pod-create.0m")
OBJECT = json.loads(CREATE.body)["request"]["object"]
AUTHORITY = Authority("webhooks")
BUNDLE = base64.b64encode(AUTHORITY.pem).decode()
LABEL = {"op": "add", "path": "/metadata/labels/team", "value": "a"}
SERVICE = {"name": "judge", "namespace": "hooks", "path": "/judge", "port": 443}


@pytest.fixture(scope="module")
def webhook_files(tmp_path_factory):
    """Files of a webhook's certificate and key."""
    return AUTHORITY.issue(NAME, "127.0.0.1").write(tmp_path_factory.mktemp("webhook"))


@pytest.fixture
def hooked(webhook_files):
    """``async with hooked(script) as hook``: a webhook."""

    def serve(script=allows):
        return served(Hook(script), server_context(*webhook_files))

    return serve


def native(kind, *clients, bundle=BUNDLE, **fields):
    """A native configuration named "native" with a webhook for each client, NAME-INDEX.test.example.com, on pods."""
    webhooks = [
        {
            "name": f"judge-{index}.test.example.com",
            "clientConfig": client | {"caBundle": bundle},
            "rules": [PODS],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        | fields
        for index, client in enumerate(clients)
    ]
    metadata = {"name": "native"}
    api = "admissionregistration.k8s.io/v1"
    return {"apiVersion": api, "kind": f"{kind}WebhookConfiguration", "metadata": metadata, "webhooks": webhooks}


def own(phase, hooks, **fields):
    """Documents of our own kinds: a Worker for each webhook, NAME -> client, and a policy of each."""
    api = {"apiVersion": "admission-gateway.dev/v1alpha1"}
    workers = [
        api | {"kind": "Worker", "metadata": {"name": name}, "spec": {"webhook": client | {"caBundle": BUNDLE}}}
        for name, client in hooks.items()
    ]
    policies = [policy(name, worker=name, **fields) for name in hooks]
    chain = api | {"kind": f"{phase}PolicyConfiguration", "metadata": {"name": "test"}, "policies": policies}
    return [*workers, chain]


def text(*documents):
    """The text of a policy file."""
    return "---\n".join(json.dumps(each) + "\n" for each in documents)


def known(*documents):
    """What a policy file with these documents says."""
    configuration = load([SourceText(name="test.yaml", content=text(*documents).encode())])
    assert not configuration.errors
    return configuration


def by_url(hook):
    """A clientConfig."""
    return {"url": hook.url}


# --------------------------------------------------------------------------------------------- native configurations


async def test_a_native_webhook_is_called_as_by_kube_apiserver(hooked, gateway):
    """Its request is kube-apiserver's but for the uid, its denial goes out untouched, and so do its warnings."""

    def script(got):
        status = {"code": 418, "message": "not this pod", "reason": "Teapot"}
        return http(body=review(got, allowed=False, status=status, warnings=["look out"]))

    async with hooked(script) as hook, gateway(known(native("Validating", by_url(hook)))) as serving:
        answer = await serving.send(message(CREATE))
    (got,) = hook.got
    uid = json.loads(CREATE.body)["request"]["uid"]
    assert got.body == CREATE.body.replace(uid.encode(), got.uid.encode())
    assert got.uid != uid
    assert got.target.startswith("/judge?timeout=")
    assert answer.response["uid"] == uid
    status = answer.response["status"]
    assert (status["code"], status["reason"], status["message"]) == (418, "Teapot", "not this pod")
    assert answer.response["warnings"] == ["look out"]


async def test_a_service_is_found_by_resolve_and_shown_its_credentials(hooked, gateway):
    """As inside of the cluster: host, path and port are the Service's."""
    async with hooked() as hook:
        access = WebhookAccess(
            validating=Users(named={f"{NAME}:443": Credentials(token="exact"), "*": Credentials(token="star")}),
            resolved=read_overrides([f"{NAME}:443=127.0.0.1:{hook.port}"]),
        )
        configuration = known(native("Validating", {"service": SERVICE}))
        async with gateway(configuration, transport_config=TransportConfig(webhooks=access)) as serving:
            assert (await serving.send(message(CREATE))).response["allowed"]
    (got,) = hook.got
    assert (got.header("Host"), got.header("Authorization")) == (f"{NAME}:443", "Bearer exact")


async def test_mutating_webhooks_are_a_chain(hooked, gateway):
    """The second one sees what the first one made, and the blame names each."""
    second = {"op": "add", "path": "/metadata/annotations", "value": {"seen": "yes"}}

    def script(got):
        labels = got.review["request"]["object"]["metadata"].get("labels", {})
        operation = LABEL if got.target.startswith("/first") else second
        wants = operation is LABEL or labels.get("team") == "a"
        return http(body=review(got, **json_patch(operation) if wants else {}))

    async with hooked(script) as hook:
        clients = [{"url": f"https://127.0.0.1:{hook.port}/{path}"} for path in ("first", "second")]
        async with gateway(known(native("Mutating", *clients))) as serving:
            answer = await serving.send(message(MUTATING))
            (decision,) = serving.decisions.values()
    paths = {each["path"] for each in json.loads(base64.b64decode(answer.response["patch"]))}
    assert {"/metadata/labels/team", "/metadata/annotations"} <= paths
    assert {each.path: (each.qualified_name, each.worker) for each in decision.field_changes} == {
        "/metadata/labels/team": (
            "native/judge-0.test.example.com",
            "MutatingWebhookConfiguration/native/judge-0.test.example.com",
        ),
        "/metadata/annotations": (
            "native/judge-1.test.example.com",
            "MutatingWebhookConfiguration/native/judge-1.test.example.com",
        ),
    }


@pytest.mark.parametrize(("policy_of_failure", "allowed"), [("Fail", False), ("Ignore", True)])
async def test_a_failed_call_goes_to_the_failure_policy(hooked, gateway, policy_of_failure, allowed):
    """In kube-apiserver's words, and with the reason code."""
    async with hooked(lambda _: http(500, b"oh no", content_type="text/plain")) as hook:
        configuration = known(native("Validating", by_url(hook), failurePolicy=policy_of_failure))
        async with gateway(configuration) as serving:
            answer = await serving.send(message(CREATE))
    assert answer.response["allowed"] is allowed
    if not allowed:
        assert answer.fails_with("WORKER_FAILURE")
        calling = 'failed calling webhook "judge-0.test.example.com": failed to call webhook: '
        words = 'an error on the server ("oh no") has prevented the request from succeeding'
        assert calling + words in answer.response["status"]["message"]


async def test_a_webhook_that_hangs_costs_other_policies_nothing(hooked, gateway):
    """While all that it may have open hang in it, another one is called, over and over, and answers."""
    let_go = asyncio.Event()

    async def hang(got, writer):
        await let_go.wait()
        writer.write(allows(got))
        await writer.drain()

    async with hooked(hang) as hanging, hooked() as well:
        configuration = known(native("Validating", by_url(hanging), by_url(well), timeoutSeconds=30))
        limits = TransportLimits(worker_in_flight=5)  # of which one policy may have three in one namespace
        async with gateway(configuration, transport_limits=limits) as serving:
            stuck = [
                asyncio.ensure_future(serving.send(post(CREATE.body, "/validate/judge-0.test.example.com?timeout=30s")))
                for _ in range(3)
            ]
            async with asyncio.timeout(WAIT_SECONDS):
                while len(hanging.got) < 3:
                    await hanging.reached.wait()
                    hanging.reached.clear()
            for _ in range(10):
                answer = await serving.send(post(CREATE.body, "/validate/judge-1.test.example.com?timeout=30s"))
                assert answer.response["allowed"]
            refused = await serving.send(post(CREATE.body, "/validate/judge-0.test.example.com?timeout=30s"))
            assert refused.response["status"]["code"] == 429
            assert not any(each.done() for each in stuck)
            let_go.set()
            assert all(answer.response["allowed"] for answer in await asyncio.gather(*stuck))
            worker = "ValidatingWebhookConfiguration/native/judge-0.test.example.com"
            assert serving.metric("worker_events_total", worker=worker, event="in_flight") == 1
            assert serving.metric("worker_connections", worker=worker) == 3


# ---------------------------------------------------------------------------------------------- kinds of our own


async def test_inputs_narrow_what_a_webhook_sees(hooked, gateway):
    """The rest of the object does not leave the gateway."""
    async with hooked() as hook:
        documents = own("Validating", {"judge": by_url(hook)}, inputs=["/object/metadata/labels"])
        async with gateway(known(*documents)) as serving:
            assert (await serving.send(message(CREATE))).response["allowed"]
    request = hook.got[0].review["request"]
    assert set(request["object"]) == {"metadata"}
    assert set(request["object"]["metadata"]) <= {"labels"}
    assert "userInfo" not in request
    assert request["kind"] == {"group": "", "version": "v1", "kind": "Pod"}
    assert request["uid"]


async def test_a_cached_verdict_of_a_webhook_is_used_again(hooked, gateway):
    """For the same document, though each call would have a uid of its own."""
    async with hooked() as hook:
        documents = own("Validating", {"judge": by_url(hook)}, cache={"ttl": "5m"})
        async with gateway(known(*documents)) as serving:
            for uid in ("u1", "u2"):
                changed = json.loads(CREATE.body)
                changed["request"]["uid"] = uid
                assert (await serving.send(message(CREATE, body=json.dumps(changed).encode()))).response["allowed"]
            sources = [serving.decisions[uid].calls[0].source for uid in ("u1", "u2")]
    assert sources == [Source.CALLED, Source.MEMORY]
    assert len(hook.got) == 1


@pytest.mark.parametrize("mode", ["warn", "audit"])
async def test_the_mode_holds_for_a_webhook_too(hooked, gateway, mode):
    """Its denial refuses nothing."""

    def script(got):
        return http(body=review(got, allowed=False, status={"message": "not today"}))

    async with hooked(script) as hook:
        documents = own("Validating", {"judge": by_url(hook)}, mode=mode)
        async with gateway(known(*documents)) as serving:
            response = (await serving.send(message(CREATE))).response
    assert response["allowed"]
    assert any("not today" in each for each in response.get("warnings", [])) is (mode == "warn")


# -------------------------------------------------------------------------------------------------- the commands


@pytest.fixture
def files(tmp_path):
    """A kubeconfig, an AdmissionConfiguration that names it, and the review of a file."""
    kubeconfig = tmp_path / "webhooks.kubeconfig"
    users = [{"name": "*.hooks.svc", "user": {"token": "from-the-kubeconfig"}}]
    kubeconfig.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "users": users}))
    group = "apiserver.config.k8s.io/v1"
    plugin = {"apiVersion": group, "kind": "WebhookAdmissionConfiguration", "kubeConfigFile": str(kubeconfig)}
    plugins = [{"name": "ValidatingAdmissionWebhook", "configuration": plugin}]
    admission = tmp_path / "admission.yaml"
    admission.write_text(json.dumps({"apiVersion": group, "kind": "AdmissionConfiguration", "plugins": plugins}))
    (tmp_path / "review.json").write_bytes(CREATE.body)
    (tmp_path / "policies.yaml").write_text(text(native("Validating", {"service": SERVICE})))
    return tmp_path


async def run(*arguments):
    """A command of ours; its exit code and all that it said."""
    command = [COMMAND, *map(str, arguments)]
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=2 * WAIT_SECONDS, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    "flags",
    [("--webhook-kubeconfig", "webhooks.kubeconfig"), ("--admission-control-config-file", "admission.yaml")],
)
async def test_review_calls_webhooks_offline(hooked, files, flags):
    """With credentials and places from the same flags as serve."""
    flag, name = flags
    async with hooked() as hook:
        code, said = await run(
            "review",
            *("--policies", files / "policies.yaml", "--phase", "validate"),
            *(flag, files / name, "--resolve", f"{NAME}:443=127.0.0.1:{hook.port}"),
            files / "review.json",
        )
    assert code == 0, said
    assert hook.got[0].header("Authorization") == "Bearer from-the-kubeconfig"


async def test_serve_calls_webhooks(hooked, files, serve, trust):
    """The flags reach the worker in a process of its own."""
    async with hooked() as hook:

        def called():
            flags = ("--webhook-kubeconfig", files / "webhooks.kubeconfig")
            place = ("--resolve", f"{NAME}:443=127.0.0.1:{hook.port}")
            process = serve("--policies", files / "policies.yaml", *flags, *place).ready()
            with Client(process.port, trust) as client:
                return client.send(message(CREATE))

        answer = await asyncio.to_thread(called)
    assert answer.response["allowed"]
    assert hook.got[0].header("Authorization") == "Bearer from-the-kubeconfig"


def replace(path, content):
    """A new file in the place of the old one."""
    path.with_suffix(".new").write_text(content)
    path.with_suffix(".new").rename(path)


async def test_a_webhooks_certificate_and_authority_are_replaced_under_way(tmp_path, webhook_files, serve, trust):
    """What is open goes on; what the caBundle says anew is for a new connection, and the old one is not used for it."""
    other, path, context = Authority("others"), tmp_path / "policies.yaml", server_context(*webhook_files)
    async with served(Hook(), context) as hook:

        def believing(authority):
            bundle = base64.b64encode(authority.pem).decode()
            return text(native("Validating", by_url(hook), bundle=bundle))

        async def reload(times, content):
            replace(path, content)
            await until(lambda: process.metric("configuration_reloads_total", result="loaded") == times)

        path.write_text(believing(AUTHORITY))
        process = serve("--policies", path, "--reload-interval", 0.02)
        await asyncio.to_thread(process.ready)
        client = await AsyncClient.connect(process.port, trust)
        assert (await client.send(message(CREATE))).response["allowed"]
        context.load_cert_chain(*other.issue("127.0.0.1").write(tmp_path))
        assert (await client.send(message(CREATE))).response["allowed"]
        await reload(1, believing(other))
        assert (await client.send(message(CREATE))).response["allowed"]
        await reload(2, believing(AUTHORITY))
        refused = await client.send(message(CREATE))
        await client.close()
    assert [got.connection for got in hook.got] == [0, 0, 1]
    assert refused.fails_with("WORKER_UNAVAILABLE")
    assert "x509: certificate signed by unknown authority" in refused.response["status"]["message"]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--webhook-kubeconfig", "none"), "none: cannot be read"),
        (("--webhook-kubeconfig", "exec.json"), "users[0].user.exec"),
        (("--admission-control-config-file", "webhooks.kubeconfig"), "AdmissionConfiguration"),
        (("--resolve", "nonsense"), "is not NAME:PORT=HOST:PORT"),
        (
            ("--webhook-kubeconfig", "webhooks.kubeconfig", "--admission-control-config-file", "admission.yaml"),
            "cannot be combined",
        ),
    ],
)
def test_flags_that_say_nothing_usable_refuse_the_start(files, flags, said):
    """Before anything listens, in one line, with exit code 2."""
    users = [{"name": "a:1", "user": {"exec": {"command": "x"}}}]
    (files / "exec.json").write_text(json.dumps({"users": users}))
    there = [str(files / each) if (files / each).exists() or each == "none" else each for each in flags]
    known = ["--policies", str(files / "policies.yaml"), "--tls-dev-dir", str(files / "tls")]
    result = CliRunner().invoke(main, ["serve", *known, *there])
    assert result.exit_code == 2
    assert said in result.output
