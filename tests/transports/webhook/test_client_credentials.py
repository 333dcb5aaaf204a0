"""Who the gateway is at which webhook, and where that is: kubeconfig, AdmissionConfiguration, --resolve."""

import base64
import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.policies.model import Phase
from gateway.transports.webhook.admission_configuration import read_admission_configuration
from gateway.transports.webhook.client_credentials import (
    ANONYMOUS,
    AccessError,
    Credentials,
    Users,
    WebhookAccess,
    join_host_port,
)
from gateway.transports.webhook.host_overrides import read_overrides
from gateway.transports.webhook.kubeconfig import read_kubeconfig

# ------------------------------------------------------------------------------------------------------ who it is


def go_split_host_port(hostport):
    """net.SplitHostPort, line by line; None: an error."""
    j = k = 0
    i = hostport.rfind(":")
    if i < 0:
        return None
    if hostport[0] == "[":
        end = hostport.find("]")
        if end < 0 or end + 1 == len(hostport) or end + 1 != i:
            return None
        host = hostport[1:end]
        j, k = 1, end + 1
    else:
        host = hostport[:i]
        if ":" in host:
            return None
    if "[" in hostport[j:] or "]" in hostport[k:]:
        return None
    return host, hostport[i + 1 :]


def go_client_config(names, target, current):
    """defaultAuthenticationInfoResolver.clientConfig, line by line, but for the in-cluster configuration."""
    if target in names:
        return target
    steps = target.split(".")
    for i in range(1, len(steps)):
        nick = "*." + ".".join(steps[i:])
        if nick in names:
            return nick
    split = go_split_host_port(target)
    if split is not None and split[1] == "443":
        host = split[0]
        if host in names:
            return host
        steps = host.split(".")
        for i in range(1, len(steps)):
            nick = "*." + ".".join(steps[i:])
            if nick in names:
                return nick
    if "*" in names:
        return "*"
    return current


LABELS = st.sampled_from(["a", "b", "hooks", "svc", "127", "*", "::1", ""])
HOSTS = st.lists(LABELS, min_size=1, max_size=4).map(".".join)
PORTS = st.sampled_from(["443", "8443", "44"])
TARGETS = st.one_of(
    st.builds(join_host_port, HOSTS, PORTS),
    st.sampled_from(["[::1]:443", "[[::1]]:443", "[fe80::1]:8443", "kubernetes.default.svc:443"]),
)


@st.composite
def targets_and_names(draw):
    """A target, and names that are likely to be about it."""
    target = draw(TARGETS)
    host, _, port = target.rpartition(":")
    suffixes = ["*." + part for text in (target, host) for part in _tails(text)]
    likely = [target, host, host.strip("[]"), "*", "::1", "[::1]", *suffixes, f"*:{port}", f"*.{port}"]
    return target, draw(st.sets(st.one_of(st.sampled_from(likely), st.builds(join_host_port, HOSTS, PORTS))))


def _tails(text):
    steps = text.split(".")
    return [".".join(steps[i:]) for i in range(1, len(steps))]


@pytest.mark.property
@given(targets_and_names(), st.booleans())
def test_the_user_is_the_one_that_kube_apiserver_takes(case, has_current):
    """For every target and every set of names, against a transcription of its source."""
    target, names = case
    users = {name: Credentials(token=f"of {name}") for name in names}
    current = Credentials(token="current") if has_current else None
    expected = go_client_config(names, target, None)
    found = Users(named=users, current=current).of(target)
    assert found == (users[expected] if expected is not None else current or ANONYMOUS)


@pytest.mark.parametrize(
    ("names", "target", "expected"),
    [
        (["a.b.svc:443", "a.b.svc", "*.b.svc:443", "*"], "a.b.svc:443", "a.b.svc:443"),
        (["a.b.svc", "*.b.svc:443", "*"], "a.b.svc:443", "*.b.svc:443"),
        (["a.b.svc", "*.svc", "*"], "a.b.svc:443", "a.b.svc"),
        (["*.svc", "*.b.svc", "*"], "a.b.svc:443", "*.b.svc"),
        (["a.b.svc", "*.svc", "*"], "a.b.svc:8443", "*"),
        (["*.svc:8443", "*"], "a.b.svc:8443", "*.svc:8443"),
        (["a.b.svc"], "a.b.svc:8443", None),
        ([], "kubernetes.default.svc:443", None),
    ],
)
def test_the_best_name_wins(names, target, expected):
    """Exact before ``*.suffix`` before ``*``, with the port before without, and 443 only without."""
    users = Users(named={name: Credentials(token=name) for name in names})
    assert users.of(target) == (ANONYMOUS if expected is None else Credentials(token=expected))


def test_an_empty_user_is_anonymous_and_ends_the_search():
    """That is how a webhook is excepted from ``*``."""
    users = Users(named={"a:1": Credentials(), "*": Credentials(token="star")})
    assert users.of("a:1") == ANONYMOUS
    assert users.of("b:1") == Credentials(token="star")


def test_no_secret_is_shown_by_accident():
    """Neither key, token nor password stands in what a log would show of an object."""
    shown = repr(WebhookAccess(mutating=Users(named={"*": Credentials(key=b"KEY", token="TOKEN", password="PASS")})))
    assert not any(secret in shown for secret in ("KEY", "TOKEN", "PASS"))


# ------------------------------------------------------------------------------------------------------ kubeconfig


def kubeconfig(tmp_path, *users, name="webhooks.kubeconfig", **members):
    """A kubeconfig file with these users (name, user)."""
    document = {"apiVersion": "v1", "kind": "Config"} | members
    document["users"] = [{"name": each, "user": user} for each, user in users]
    path = tmp_path / name
    path.write_text(json.dumps(document))
    return path


def test_a_kubeconfig_has_every_kind_of_credential(tmp_path):
    """Relative files begin beside it; data goes with them."""
    path = kubeconfig(
        tmp_path,
        ("a:1", {"client-certificate": "c.crt", "client-key": "/k.key"}),
        ("b:1", {"client-certificate-data": base64.b64encode(b"C").decode(), "client-key-data": "Sw=="}),
        ("c:1", {"token": "t", "tokenFile": "token"}),
        ("d:1", {"username": "u", "password": "p:ö"}),
        ("e:1", None),
    )
    assert read_kubeconfig(path).named == {
        "a:1": Credentials(certificate_file=f"{tmp_path}/c.crt", key_file="/k.key"),
        "b:1": Credentials(certificate=b"C", key=b"K"),
        "c:1": Credentials(token="t", token_file=f"{tmp_path}/token"),
        "d:1": Credentials(username="u", password="p:ö"),
        "e:1": ANONYMOUS,
    }


def test_the_current_context_is_the_last_resort(tmp_path):
    """As a kubectl user's kubeconfig has one."""
    contexts = [{"name": "there", "context": {"cluster": "c", "user": "me"}}]
    path = kubeconfig(tmp_path, ("me", {"token": "t"}), contexts=contexts, **{"current-context": "there"})
    assert read_kubeconfig(path).of("a:1") == Credentials(token="t")
    nowhere = kubeconfig(tmp_path, ("me", {"token": "t"}), contexts=contexts, **{"current-context": "elsewhere"})
    assert read_kubeconfig(nowhere).of("a:1") == ANONYMOUS


def test_an_empty_kubeconfig_has_no_user(tmp_path):
    """As kube-apiserver takes it."""
    path = tmp_path / "empty"
    path.write_text("")
    assert read_kubeconfig(path) == Users()


@pytest.mark.parametrize(
    ("user", "said"),
    [
        ({"exec": {"command": "x"}}, "users[0].user.exec: the gateway runs no credential plugin"),
        ({"auth-provider": {"name": "x"}}, "users[0].user.auth-provider: auth provider not supported"),
        ({"as": "admin"}, "users[0].user.as: impersonation is for API servers"),
        ({"as-groups": ["g"]}, "users[0].user.as-groups: impersonation"),
        ({"token": "t", "username": "u"}, "username/password or bearer token may be set, but not both"),
        ({"tokenFile": "t", "password": "p"}, "username/password or bearer token may be set, but not both"),
        ({"client-certificate": "c"}, "users[0].user.client-certificate: needs client-key"),
        ({"client-key-data": "Sw=="}, "users[0].user.client-key: needs client-certificate"),
        ({"client-key-data": "!"}, "users[0].user.client-key-data: illegal base64 data at input byte 0"),
        ({"token": "a\nb"}, "users[0].user.token: must be printable ASCII"),
        ({"token": 7}, "users[0].user.token"),
        ("me", "users[0].user"),
    ],
)
def test_a_user_that_the_gateway_cannot_be_refuses_the_start(tmp_path, user, said):
    """With file, line and field, and nothing of what is secret."""
    path = kubeconfig(tmp_path, ("a:1", user))
    with pytest.raises(AccessError) as raised:
        read_kubeconfig(path)
    assert str(raised.value).startswith(f"{path}:1: ")
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", ""),
        ("kind: Pod", "kind"),
        ("apiVersion: v2", "apiVersion"),
        ("users: 7", "users"),
        ("users: [{name: a}, {name: a}]", 'duplicate name "a" in list'),
        ("just words", ""),
    ],
)
def test_what_is_no_kubeconfig_refuses_the_start(tmp_path, text, said):
    """Whatever it is instead."""
    path = tmp_path / "k"
    path.write_text(text)
    with pytest.raises(AccessError, match=f"^{path}") as raised:
        read_kubeconfig(path)
    assert said in str(raised.value)


@pytest.mark.parametrize("text", ["just words", "[]", "7"])
def test_an_error_of_the_whole_file_has_no_empty_field(tmp_path, text):
    """FILE:LINE: MESSAGE."""
    path = tmp_path / "k"
    path.write_text(text)
    for read in (read_kubeconfig, read_admission_configuration):
        with pytest.raises(AccessError, match=rf"^{path}:1: Invalid value: "):
            read(path)


def test_a_kubeconfig_that_is_not_there(tmp_path):
    """Says so."""
    with pytest.raises(AccessError, match="cannot be read: No such file or directory"):
        read_kubeconfig(tmp_path / "none")
    with pytest.raises(AccessError, match="cannot be read: Is a directory"):
        read_kubeconfig(tmp_path)


# -------------------------------------------------------------------------------------------- AdmissionConfiguration

GROUP = "apiserver.config.k8s.io/v1"


def webhooks(path, **members):
    """The configuration of a plugin."""
    return {"apiVersion": GROUP, "kind": "WebhookAdmissionConfiguration", "kubeConfigFile": str(path)} | members


def admission(tmp_path, *plugins, **members):
    """The file of --admission-control-config-file."""
    document = {"apiVersion": GROUP, "kind": "AdmissionConfiguration", "plugins": list(plugins)} | members
    path = tmp_path / "admission.json"
    path.write_text(json.dumps(document))
    return path


def test_each_phase_has_its_own_kubeconfig(tmp_path):
    """In place, or in a file beside; the first of a name counts, and other plugins are ignored."""
    first = kubeconfig(tmp_path, ("*", {"token": "m"}), name="m")
    second = kubeconfig(tmp_path, ("*", {"token": "v"}), name="v")
    (tmp_path / "v.json").write_text(json.dumps(webhooks(second)))
    path = admission(
        tmp_path,
        {"name": "PodSecurity", "configuration": {"whatever": 1}},
        {"name": "MutatingAdmissionWebhook", "configuration": webhooks(first), "path": "ignored"},
        {"name": "ValidatingAdmissionWebhook", "path": "v.json"},
        {"name": "MutatingAdmissionWebhook", "configuration": webhooks("/none")},
    )
    access = read_admission_configuration(path)
    assert access.credentials(Phase.MUTATING, "a:1") == Credentials(token="m")
    assert access.credentials(Phase.VALIDATING, "a:1") == Credentials(token="v")


def test_a_phase_without_plugin_is_anonymous(tmp_path):
    """Or with one that names no kubeconfig."""
    path = admission(tmp_path, {"name": "ValidatingAdmissionWebhook"})
    assert read_admission_configuration(path) == WebhookAccess()


@pytest.mark.parametrize(
    ("plugin", "said"),
    [
        (webhooks("relative"), "must be an absolute file path"),
        (webhooks("/none"), "/none: cannot be read"),
        (webhooks("", staticManifestsDir="/x"), "staticManifestsDir: static manifests are for kube-apiserver"),
        (webhooks("", other=1), 'unknown field "plugins[0].configuration.other"'),
        (webhooks("", kind="Other"), "plugins[0].configuration.kind"),
        (webhooks("", apiVersion="v1"), "plugins[0].configuration.apiVersion"),
    ],
)
def test_a_plugin_that_says_nothing_usable_refuses_the_start(tmp_path, plugin, said):
    """With the place where it stands."""
    path = admission(tmp_path, {"name": "MutatingAdmissionWebhook", "configuration": plugin})
    with pytest.raises(AccessError) as raised:
        read_admission_configuration(path)
    assert said in str(raised.value)


@pytest.mark.parametrize("members", [{"kind": "Config"}, {"apiVersion": "v1"}, {"plugins": 7}, {"more": 1}])
def test_what_is_no_admission_configuration_refuses_the_start(tmp_path, members):
    """A kubeconfig, say."""
    with pytest.raises(AccessError):
        read_admission_configuration(admission(tmp_path, **members))


# --------------------------------------------------------------------------------------------------------- places


def test_resolve_says_where_names_are():
    """Names in any case, addresses of both kinds."""
    said = ["Judge.hooks.svc:443=127.0.0.1:8443", "b.example.com:8443=[::1]:1", "c:1=d:2", "c:1=d:2"]
    assert read_overrides(said) == {
        ("judge.hooks.svc", 443): ("127.0.0.1", 8443),
        ("b.example.com", 8443): ("::1", 1),
        ("c", 1): ("d", 2),
    }


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a:1",
        "a:1=",
        "a=b:1",
        "a:1=b",
        "a:0=b:1",
        "a:1=b:65536",
        "a:x=b:1",
        ":1=b:1",
        "a:1=::1:1",
        "a b:1=c:1",
        "127.0.0.1:1=a:1",
        "[::1]:1=a:1",
        "[a]:1=b:1",
        "a:1=b:1=c:1",
        "a:1=[b]:1",
        "a:1=b:²",
        "ä:1=b:1",
        "a:1=b:" + "1" * 5000,
    ],
)
def test_a_resolve_that_says_nothing_is_refused(text):
    """In one line that says what is wrong."""
    with pytest.raises(AccessError, match="--resolve"):
        read_overrides([text])


def test_two_places_for_one_name_are_refused():
    """It would be unknown which."""
    with pytest.raises(AccessError, match="has another address"):
        read_overrides(["a:1=b:1", "A:1=b:2"])


@pytest.mark.property
@given(st.text(alphabet=string.ascii_letters + string.digits + ".:=[]-/@ \u00e4\u00b2\n", max_size=30))
def test_a_resolve_is_read_or_refused(text):
    """And never anything else."""
    try:
        places = read_overrides([text])
    except AccessError:
        return
    ((host, port), (dialled, at)) = next(iter(places.items()))
    assert host
    assert dialled
    assert 0 < port < 65536
    assert 0 < at < 65536
