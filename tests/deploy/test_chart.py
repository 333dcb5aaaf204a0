"""The chart: what helm accepts, what it renders, and whether the gateway takes it."""

import itertools
import re
from importlib.metadata import version

import pytest
import yaml

from gateway.bounds import MEMORY_BUDGET
from gateway.cli.main import main
from gateway.serving.limits import SHUTDOWN_DELAY_SECONDS, Limits
from gateway.transports.limits import TransportLimits
from tests.deploy.chart import CHART, NAME, RENDERED, flags, helm, rendered, template

MEBIBYTE = 2**20

KEPT_IDLE = 90
"""Seconds for which kube-apiserver keeps an idle connection: Go's http.DefaultTransport."""


@pytest.fixture(scope="module")
def objects():
    """The objects rendered with values of a name, or with the flags of helm's own."""
    known = {}

    def read(values=None, *more):
        if (values, *more) not in known:
            known[values, *more] = list(yaml.safe_load_all(template(*flags(values), *more)))
        return known[values, *more]

    return read


def only(objects, kind, name=NAME):
    """The object of this kind and name."""
    (found,) = [each for each in objects if each["kind"] == kind and each["metadata"]["name"] == name]
    return found


def pod(objects):
    """The spec of the gateway's pods."""
    return only(objects, "Deployment")["spec"]["template"]["spec"]


def pods(objects):
    """The specs of all pods."""
    made = [each["spec"] for each in objects if each["kind"] in {"Deployment", "Job"}]
    made += [each["spec"]["jobTemplate"]["spec"] for each in objects if each["kind"] == "CronJob"]
    return [each["template"]["spec"] for each in made]


# ------------------------------------------------------------------------------------------------- what helm says


@pytest.mark.parametrize("values", RENDERED)
def test_helm_has_nothing_to_object(values):
    """`helm lint --strict` accepts the chart with all values that the tests have."""
    done = helm("lint", "--strict", *flags(values))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("values", "path"), RENDERED.items())
def test_the_manifests_are_the_charts(values, path):
    """The plain manifests are what helm renders: `make manifests` writes them."""
    assert path.read_text() == rendered(values)


@pytest.mark.parametrize(
    ("wrong", "names"),
    [
        (["replica=3"], "replica"),
        (["autoscaling.minReplica=3"], "minReplica"),
        (["drainSeconds=9"], "drainSeconds"),
        (["memoryBudget=lots"], "memoryBudget"),
        (["processes=0"], "processes"),
        (["image.digest=sha1:0"], "digest"),
        (["redis.existingSecret=redis"], "sealKeySecret"),
        (["redis.sealKeySecret=seal"], "sealKeySecret"),
        (["workers[0].name=labels"], "image"),
        (["workers[0].name=La_bels", "workers[0].image=labels:1"], "name"),
        (["workers[0].name=hooks", "workers[0].hooks.roles.platform[0].verbs[0]=list"], "image"),
        (
            [
                "workers[0].name=hooks",
                "workers[0].hooks.configMap=hooks",
                "workers[0].hooks.clusterRole[0].verbs[0]=get",
            ],
            "apiGroups",
        ),
        (["callers.keys[0]=ca.crt"], "callers"),
        (["callers.existingSecret=c"], "callers"),
        (["callers.existingSecret=c", "callers.keys[0]=token"], "callers"),
        (["callers.existingSecret=c", "callers.keys[0]=basic-auth", "callers.allowedNames[0]=x"], "callers"),
        (["extraArgs[0]=serve"], "extraArgs"),
        (["policies.labels=x"], "labels"),
        (["priorityClass.create=true"], "priorityClass"),
        (["autoscaling.minReplicas=11"], "minReplicas 11 is above maxReplicas 10"),
    ],
)
def test_wrong_values_are_refused(wrong, names):
    """A value that is unknown, impossible or without its pair renders nothing, and the message names it."""
    done = helm("template", *itertools.chain.from_iterable(("--set", each) for each in wrong))
    assert done.returncode != 0
    assert names in done.stderr


def test_every_value_has_a_place_in_the_schema():
    """Whatever values.yaml has, the schema describes, level by level."""
    schema = yaml.safe_load((CHART / "values.schema.json").read_text())

    def undescribed(values, described, path):
        for key, value in values.items():
            inner = described["properties"].get(key)
            if inner is None:
                yield f"{path}{key}"
            elif isinstance(value, dict) and "properties" in inner:
                yield from undescribed(value, inner, f"{path}{key}.")

    assert list(undescribed(yaml.safe_load((CHART / "values.yaml").read_text()), schema, "")) == []


@pytest.mark.parametrize("values", RENDERED)
def test_the_notes_name_flags_that_exist(values):
    """After an installation helm prints how to register the gateway, unless it does so itself."""
    _, notes = helm("install", *flags(values), "--dry-run=client").stdout.split("NOTES:\n")
    commands = re.findall(r"-- admission-gateway (\w+)((?:[^\\\n]|\\\n)*)", notes)
    assert [command for command, _ in commands] == ["render"] if values == "node-network" else ["resume"]
    for command, arguments in commands:
        known = {name for option in main.commands[command].params for name in option.opts}
        assert {word for word in arguments.split() if word.startswith("--")} <= known


def test_the_notes_ask_for_the_address_of_the_runbooks():
    """Until alerts lead to an address, helm says which value it is."""
    value = "monitoring.prometheusRule.runbooks"
    enabled = ("--dry-run=client", "--set", "monitoring.prometheusRule.enabled=true")
    assert value in helm("install", *enabled).stdout.split("NOTES:\n")[1]
    assert value not in helm("install", *enabled, "--set", f"{value}=https://example.com/runbooks").stdout


# ------------------------------------------------------------------------------------------ what the gateway needs


@pytest.mark.parametrize("values", RENDERED)
def test_every_flag_exists(objects, values):
    """The pods' arguments are flags of `serve`, with values, and variables set none of another name."""
    for spec in pods(objects(values)):
        (container,) = spec["containers"]
        if container["name"] != "worker":
            command, *arguments = container["args"]
            options = {name: option for option in main.commands[command].params for name in option.opts}
            assert [each for each in arguments if each.partition("=")[0] not in options] == []
    (container,) = pod(objects(values))["containers"]
    options = {name: option for option in main.commands["serve"].params for name in option.opts}
    known = {variable for option in options.values() for variable in option.envvar or ()}
    known |= {option.envvar for option in options.values() if isinstance(option.envvar, str)}
    variables = {each["name"] for each in container.get("env", ())}
    assert {each for each in variables if each.startswith("ADMISSION_GATEWAY_")} <= known


@pytest.mark.parametrize("values", RENDERED)
def test_every_path_is_mounted(objects, values):
    """A path in the arguments is below a mount, and every mount has its volume."""
    spec = pod(objects(values))
    (container,) = spec["containers"]
    mounts = [each["mountPath"] for each in container["volumeMounts"]]
    paths = [each.partition("=")[2] for each in container["args"] if "=/" in each]
    assert [path for path in paths if not any(f"{path}/".startswith(f"{mount}/") for mount in mounts)] == []
    assert {each["name"] for each in container["volumeMounts"]} == {each["name"] for each in spec["volumes"]}


@pytest.mark.parametrize("seconds", [None, 10, 25])
def test_a_pod_has_time_to_drain(objects, seconds):
    """Kubernetes kills a pod only after delay and drain, the longest review, and the stop of a started worker."""
    spec = pod(objects(None, *(() if seconds is None else ("--set", f"drainSeconds={seconds}"))))
    (drain,) = [float(each.partition("=")[2]) for each in spec["containers"][0]["args"] if each.startswith("--drain=")]
    longest = max(drain, SHUTDOWN_DELAY_SECONDS) + Limits().stop_seconds + TransportLimits().worker_stop_seconds
    assert spec["terminationGracePeriodSeconds"] > longest


def test_hooks_have_the_rules_of_the_values(objects):
    """In the whole cluster or in one namespace, for their own service account alone; without rules there is none."""
    everything = objects("everything")
    role, account = f"{NAME}:{NAME}-hooks", {"kind": "ServiceAccount", "namespace": NAME, "name": f"{NAME}-hooks"}
    assert only(everything, "ClusterRole", role)["rules"][0]["resources"] == ["namespaces"]
    assert only(everything, "Role", role)["rules"][0]["resources"] == ["configmaps"]
    assert only(everything, "Role", role)["metadata"]["namespace"] == "platform"
    bindings = [only(everything, f"{kind}Binding", role) for kind in ("ClusterRole", "Role")]
    assert [each["subjects"] for each in bindings] == [[account]] * 2
    assert [each["roleRef"]["name"] for each in bindings] == [role] * 2
    assert f"{NAME}-checks" not in {each["metadata"]["name"] for each in everything if "Account" in each["kind"]}


def test_no_pod_has_a_pre_stop_hook(objects):
    """The gateway itself goes on serving while endpoints still lead to it."""
    assert [spec for spec in pods(objects("everything")) if "lifecycle" in spec["containers"][0]] == []


def test_the_drain_outlasts_idle_connections(objects):
    """After the delay, kube-apiserver has time to close the connections that it keeps."""
    (drain,) = [float(each.partition("=")[2]) for each in pod(objects())["containers"][0]["args"] if "--drain=" in each]
    assert drain > SHUTDOWN_DELAY_SECONDS + KEPT_IDLE


def test_memory_is_left_beside_the_budget(objects):
    """The budget is at most three quarters of the container's memory, and holds eight of the largest bodies."""
    (container,) = pod(objects())["containers"]
    (budget,) = [each.partition("=")[2] for each in container["args"] if each.startswith("--memory-budget=")]
    assert budget.endswith("Mi")
    assert container["resources"]["limits"]["memory"] == f"{MEMORY_BUDGET // 2**30}Gi"
    assert int(budget[:-2]) * MEBIBYTE <= MEMORY_BUDGET * 3 // 4


# ----------------------------------------------------------------------------------------------- what a cluster needs


@pytest.mark.parametrize("values", RENDERED)
def test_only_who_calls_the_api_has_a_token(objects, values):
    """The gateway and hooks have one with `--cluster` only, and with it a role of their own; workers never have one."""
    everything = objects(values)
    assert all(each["automountServiceAccountToken"] is False for each in pods(everything))
    assert only(everything, "ServiceAccount")["automountServiceAccountToken"] is False
    uses_it = "--cluster" in pod(everything)["containers"][0]["args"]
    with_token = [spec for spec in pods(everything) if "serviceAccountToken" in str(spec["volumes"])]
    deployed = [each["spec"]["template"]["spec"] for each in everything if each["kind"] == "Deployment"]
    assert [spec in with_token for spec in deployed] == [
        "--cluster" in spec["containers"][0].get("args", ()) for spec in deployed
    ]
    accounts = {spec["serviceAccountName"] for spec in with_token}
    assert accounts <= {NAME, *([f"{NAME}-hooks", f"{NAME}-audit"] if values == "everything" else [])}
    assert all(only(everything, "ServiceAccount", name) for name in accounts)
    assert (pod(everything) in with_token) is uses_it
    assert any(each["kind"] == "ClusterRoleBinding" for each in everything) is uses_it
    assert any(each["kind"] == "FlowSchema" for each in everything) is uses_it


def test_nothing_is_uninstalled_by_applying_manifests(objects):
    """The Job that removes the registration is a hook of helm's, and the manifests for kubectl have none."""
    (job,) = [each for each in objects() if each["kind"] == "Job"]
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-delete"
    assert "kind: Job" not in RENDERED[None].read_text()


def test_an_audit_may_list_what_the_values_say(objects):
    """And read nothing else of users: it has a role of its own, and workers let it in."""
    everything = objects("everything")
    rules = only(everything, "ClusterRole", f"{NAME}:{NAME}-audit")["rules"]
    assert {"apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["list"]} in rules
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list", "watch", "create"}
    spec = only(everything, "CronJob", f"{NAME}-audit")["spec"]["jobTemplate"]["spec"]["template"]
    (container,) = spec["spec"]["containers"]
    assert {"--output=policyreport", "--rate=5", "--cluster-policies"} <= set(container["args"])
    mounts = {each["name"] for each in container["volumeMounts"]}
    assert mounts == {each["name"] for each in spec["spec"]["volumes"]}
    worker = only(everything, "NetworkPolicy", f"{NAME}-samples")["spec"]["ingress"][0]["from"]
    assert any(each["podSelector"]["matchLabels"].items() <= spec["metadata"]["labels"].items() for each in worker)
    assert "CronJob" not in {each["kind"] for each in objects()}


def test_the_role_has_no_wildcard(objects):
    """Every verb and resource is named."""
    rules = [rule for each in objects("everything") if each["kind"].endswith("Role") for rule in each["rules"]]
    assert rules
    assert [rule for rule in rules if "*" in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]] == []


def test_the_versions_are_the_gateways(objects):
    """The chart is released with the gateway, under its version."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == version(NAME)
    assert pod(objects())["containers"][0]["image"].endswith(f":{version(NAME)}")


@pytest.mark.parametrize("values", RENDERED)
def test_no_variable_of_a_service_is_a_flag(objects, values):
    """Kubernetes writes a Service's address to ADMISSION_GATEWAY_…, unless the Pod declines it."""
    assert all(each["enableServiceLinks"] is False for each in pods(objects(values)))


@pytest.mark.parametrize("values", RENDERED)
def test_every_selector_finds_its_pods_alone(objects, values):
    """A Service, budget, spread or policy of a component selects the pods of one Deployment."""
    everything = objects(values)
    labels = {
        each["metadata"]["name"]: each["spec"]["template"]["metadata"]["labels"]
        for each in everything
        if each["kind"] == "Deployment"
    }

    def selected(selector):
        return [name for name, own in labels.items() if selector.items() <= own.items()]

    for each in everything:
        spec = each.get("spec", {})
        if each["kind"] in {"Deployment", "PodDisruptionBudget"}:
            assert selected(spec["selector"]["matchLabels"]) == [each["metadata"]["name"]]
        if each["kind"] == "NetworkPolicy":
            assert selected(spec["podSelector"]["matchLabels"]) == [each["metadata"]["name"]]
        if each["kind"] == "Service":
            assert selected(spec["selector"]) == [each["metadata"]["name"].removesuffix("-metrics")]


def test_on_the_nodes_network_an_update_needs_no_free_node(objects):
    """The old pod holds the node's ports until it has stopped, so it has to stop first."""
    everything = objects("node-network")
    assert pod(everything)["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert only(everything, "Deployment")["spec"]["strategy"]["rollingUpdate"]["maxSurge"] == 0
