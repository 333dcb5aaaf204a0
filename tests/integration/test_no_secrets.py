"""What the gateway knows does not leave it: no secret is in its output or on its pages; its files are its user's."""

import base64
import json
import os
import re
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway.cli.main import main
from tests.integration.client import NAME, Client, post
from tests.integration.process import WAIT_SECONDS
from tests.integration.running import PODS, source
from tests.integration.test_reload import worker
from tests.traffic import recording

VALIDATING = recording("pod-create.1v")
UID = json.loads(VALIDATING.body)["request"]["uid"]

BEARER, PASSWORD, PATH, ADMIN, REDIS, QUEUE, WEBHOOK, COLLECTOR, CLUSTER = (
    f"{number}5ecret-{name}-5ecret{number}5ecret5ecret"
    for number, name in enumerate(
        ("bearer", "password", "path", "admin", "redis", "queue", "webhook", "collector", "cluster"), 1
    )
)
MARK = "5ecret"
"""Part of each of them; none of it may be seen anywhere."""


def key():
    """A key as ``openssl rand -base64 32`` prints it."""
    return base64.b64encode(os.urandom(32)).decode()


QUEUE_KEY = key()


@pytest.fixture
def secrets(tmp_path):
    """Each kind of secret that ``serve`` takes: the flags, the environment, and the contents that must not be seen."""
    seal, recordings = key(), key()
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "users": [{"name": "127.0.0.1:1", "user": {"username": "hooks", "password": WEBHOOK}}],
    }
    cluster = kubeconfig | {
        "users": [{"name": "me", "user": {"token": CLUSTER}}],
        "clusters": [{"name": "here", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "it", "context": {"cluster": "here", "user": "me"}}],
        "current-context": "it",
    }
    files = {
        "--bearer-token-file": BEARER,
        "--basic-auth-file": f"user:{PASSWORD}",
        "--path-secret-file": PATH,
        "--admin-token-file": ADMIN,
        "--seal-key-file": seal,
        "--recording-key-file": recordings,
        "--webhook-kubeconfig": json.dumps(kubeconfig),
        "--kubeconfig": json.dumps(cluster),
    }
    flags = []
    for flag, content in files.items():
        (tmp_path / flag[2:]).write_text(f"{content}\n")
        flags += [flag, tmp_path / flag[2:]]
    (tmp_path / "recordings").mkdir(mode=0o700)
    flags += ["--recording-dir", tmp_path / "recordings", "--recording-sample-ratio", 1, "--cluster"]
    flags += ["--log-level", "debug", "--decision-log-level", "all"]
    environment = {
        "ADMISSION_GATEWAY_REDIS": f"redis://user:{REDIS}@127.0.0.1:1/0",
        "ADMISSION_GATEWAY_QUEUE_REDIS": f"redis://:{QUEUE}@127.0.0.1:1/1",
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://user:{COLLECTOR}@127.0.0.1:1",
        "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{COLLECTOR}",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
        "OTEL_BSP_SCHEDULE_DELAY": "50",
        "OTEL_BSP_EXPORT_TIMEOUT": "100",
    }
    return flags, environment, (MARK, seal, recordings, QUEUE_KEY)


def configured(folder):
    """A policy of a worker that answers, one of a webhook that is away, and one of a queue whose Redis is."""
    text = source(workers={"reporter": worker()})
    api = {"apiVersion": "admission-gateway.dev/v1alpha1"}
    (folder / "queue.keys").write_text(f"{QUEUE_KEY}\n")
    queue = {"stream": "queued", "keyFile": str(folder / "queue.keys")}
    common = {"rules": [PODS], "sideEffects": "None", "failurePolicy": "Ignore", "timeoutSeconds": 1}
    documents = [
        api | {"kind": "Worker", "metadata": {"name": "hooked"}, "spec": {"webhook": {"url": "https://127.0.0.1:1/"}}},
        api | {"kind": "Worker", "metadata": {"name": "queued"}, "spec": {"queue": queue}},
        api
        | {
            "kind": "ValidatingPolicyConfiguration",
            "metadata": {"name": "test"},
            "policies": [
                {"name": "report.test.example.com", "worker": "reporter", **common, "cache": {"ttl": "1m"}},
                {"name": "hooked.test.example.com", "worker": "hooked", **common},
                {"name": "queued.test.example.com", "worker": "queued", **common},
            ],
        },
    ]
    return "---\n".join([text, *(json.dumps(each) + "\n" for each in documents)])


def calls(process):
    """Reviews with each right credential, with wrong ones and without; the status of each answer."""
    basic = base64.b64encode(f"user:{PASSWORD}".encode()).decode()
    wrong = base64.b64encode(f"user:{PASSWORD}x".encode()).decode()
    attempts = [
        ("/validate", f"Bearer {BEARER}"),
        ("/validate", f"Basic {basic}"),
        (f"/{PATH}/validate", None),
        ("/validate", f"Bearer {BEARER}x"),
        ("/validate", f"Basic {wrong}"),
        (f"/{PATH}x/validate", None),
        (f"/{PATH}/no-such-page", None),
        ("/validate", None),
    ]
    with Client(process.port, process.trust) as client:
        return [
            client.send(post(VALIDATING.body, f"{path}?timeout=10s", ("Authorization", sent))).status
            for path, sent in attempts
        ]


def page(process, path, token):
    """The text of a page of the admin listener, whatever its status."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(f"http://127.0.0.1:{process.admin_port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=WAIT_SECONDS) as response:  # noqa: S310 - an address of the test's
            return f"{response.headers}\n{response.read().decode()}"
    except urllib.error.HTTPError as error:
        with error:
            return f"{error.headers}\n{error.read().decode()}"


PAGES = (
    *("/metrics", "/livez", "/readyz?verbose", f"/explain/{UID}", f"/explain/{UID}?o=text", "/no-such-page"),
    *("/ui/", "/ui/api/policies", f"/ui/api/reviews/{UID}"),
)


@pytest.fixture
def open_umask():
    """Of a process whose parent leaves all permissions to it."""
    before = os.umask(0)
    yield
    os.umask(before)


def permissions(folder):
    """The permissions of all that is below a folder, by name."""
    return {path.relative_to(folder).as_posix(): path.stat().st_mode & 0o777 for path in folder.rglob("*")}


def test_nothing_that_it_knows_can_be_seen(serve, tmp_path, secrets, open_umask):
    """Tokens, passwords, keys, URLs, kubeconfigs: in no log at debug, page, decision, or file that others can read."""
    flags, environment, hidden = secrets
    (tmp_path / "policies.yaml").write_text(configured(tmp_path))
    made = tmp_path / "made"
    tls = ("--tls-dev-dir", made / "of" / "tls", "--tls-dev-name", NAME)
    log = tmp_path / "decisions"
    flags += ["--decision-log", log, "--policies", tmp_path / "policies.yaml"]
    process = serve(*flags, tls=tls, env=environment).ready()
    assert calls(process) == [200, 200, 200, 401, 401, 401, 404, 401]
    opened = {path: page(process, path, ADMIN) for path in PAGES}
    assert all("report.test.example.com" in opened[path] for path in PAGES if UID in path)
    pages = [*opened.values(), *(page(process, path, token) for path in PAGES for token in (f"{ADMIN}x", None))]
    socket = Path(process.logged("a worker is started")["listens"].removeprefix("unix:"))
    assert socket.parent.stat().st_mode & 0o777 == 0o700
    process.terminate()
    assert process.exit_code() == 0
    seen = "\n".join([*process.out.all(), *process.err.all(), log.read_text(), *pages])
    private = (made / "of/tls/tls.key").read_text().splitlines()[1]
    assert [each for each in (*hidden, private) if each in seen] == []
    # It is the output of a gateway that has used them.
    for word in (UID, "127.0.0.1:1", "reporter", "hooked", "queued", "span"):
        assert word in seen, word
    assert permissions(made) == {
        **dict.fromkeys(("of", "of/tls"), 0o700),
        **dict.fromkeys(("of/tls/ca.key", "of/tls/tls.key"), 0o600),
        **dict.fromkeys(("of/tls/ca.crt", "of/tls/tls.crt"), 0o644),
    }
    assert set(permissions(tmp_path / "recordings").values()) == {0o600}
    # Programs that collect logs may have their own user, of the file's group.
    assert log.stat().st_mode & 0o777 == 0o640


WRONG = [
    ("--bearer-token-file", f"{MARK} {MARK}\n"),
    ("--basic-auth-file", f"{MARK}-without-a-colon\n"),
    ("--path-secret-file", f"{MARK.upper()}\n"),
    ("--admin-token-file", f"{MARK}\x00{MARK}\n"),
    ("--seal-key-file", f"{MARK}\n"),
    ("--recording-key-file", f"{MARK}\n"),
    ("--webhook-kubeconfig", json.dumps({"users": [{"name": "a", "user": {"token": [MARK], "password": {MARK: 1}}}]})),
    ("--kubeconfig", f'{{"users": "{MARK}"'),
    ("--kubeconfig", f"token: {MARK}: {MARK}\n"),
    ("--kubeconfig", f"{MARK}\n"),
    ("--kubeconfig", f'{{"users": "{MARK}"}}'),
]
"""Files as they must not be, each with something secret."""


@pytest.mark.parametrize(("flag", "content"), WRONG)
def test_an_error_in_a_file_of_secrets_shows_none(tmp_path, flag, content):
    """It names the file, and what is expected."""
    path = tmp_path / "file"
    path.write_text(content)
    (tmp_path / "policies.yaml").write_text(configured(tmp_path))
    (tmp_path / "recordings").mkdir()
    needed = {
        "--seal-key-file": ["--redis", "redis://127.0.0.1:1"],
        "--recording-key-file": ["--recording-dir", str(tmp_path / "recordings")],
        "--kubeconfig": ["--cluster"],
    }
    tls = ["--tls-dev-dir", str(tmp_path / "tls"), "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]
    common = ["serve", "--policies", str(tmp_path / "policies.yaml"), *tls]
    done = CliRunner().invoke(main, [*common, flag, str(path), *needed.get(flag, [])])
    assert done.exit_code == 2, done.output
    assert str(path) in done.output
    assert MARK not in done.output.lower()


@pytest.mark.parametrize("flag", ["--redis", "--queue-redis"])
@pytest.mark.parametrize(
    "url", ["redis://u:{}@host:none", "redis://u:{}@", "http://u:{}@host", "{}", "redis://h/?password={}&x=1"]
)
def test_an_error_in_the_url_of_redis_shows_no_password(tmp_path, flag, url):
    """It says what is expected."""
    (tmp_path / "policies.yaml").write_text(configured(tmp_path))
    tls = ["--tls-dev-dir", str(tmp_path / "tls"), "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]
    done = CliRunner().invoke(
        main, ["serve", "--policies", str(tmp_path / "policies.yaml"), *tls, flag, url.format(MARK)]
    )
    assert done.exit_code == 2, done.output
    assert re.search("redis", done.output, re.IGNORECASE)
    assert MARK not in done.output
