"""docker-compose.yml, checked by its own reader, and whether the files that it names agree with it."""

import re
import subprocess

import pytest
import yaml

from deploy.demo.services import ROOT, read

COMPOSE = ROOT / "docker-compose.yml"
DOCUMENT = yaml.safe_load(COMPOSE.read_text())
SERVICES = {service.name: service for service in read()}
CONTENT = DOCUMENT["services"]

OURS = {"admission-gateway", *(f"admission-worker-{language}" for language in ("go", "node", "rust", "java"))}
"""Images that `docker compose build` makes. Their Dockerfiles end with an unprivileged user."""

IMAGES = {
    "grafana/grafana:12.4.0",
    "haproxy:3.2",
    "jaegertracing/jaeger:2.17.0",
    "otel/opentelemetry-collector-contrib:0.165.0",
    "prom/prometheus:v3.16.0",
    "redis:8.2",
}
"""Others' images, by version. Look whether one is published for amd64 and arm64 before you add it."""

DEMO = ROOT / "deploy/demo"
GRAFANA = ROOT / "deploy/grafana/provisioning"


def run(*words):
    """The output of a program that succeeds."""
    done = subprocess.run([str(word) for word in words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


# --------------------------------------------------------------------------------------- the compose file itself


def test_docker_composes_own_reader_accepts_it():
    """Schema, references between services, volumes: without a variable that must be set."""
    program = ROOT / "tests/deploy/compose/bin/compose"
    assert program.exists(), f"{program} is not there: build it with `make build-compose`"
    assert "variable is not set" not in run(program, "docker-compose.yml")


@pytest.mark.parametrize("name", CONTENT)
def test_a_service_is_hardened(name):
    """Read-only, without capabilities, unprivileged, reached from this machine only, with bounded logs."""
    service = CONTENT[name]
    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["image"] in OURS or service["user"] not in {"root", "0"}
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
    assert service["logging"]["options"].keys() == {"max-size", "max-file"}
    assert not {"privileged", "cap_add", "network_mode", "pid", "devices"} & set(service)


def test_it_has_no_secrets():
    """Keys, certificates and tokens are made by `setup`; no other service may change them."""
    assert "secrets" not in DOCUMENT
    for name, service in CONTENT.items():
        assert not [key for key in service.get("environment", ()) if re.search("PASSWORD|SECRET|TOKEN|KEY$", key)]
        state = [volume for volume in service.get("volumes", ()) if volume.startswith("state:")]
        assert all(volume.endswith(":ro") for volume in state) or name == "setup"


def test_images_are_known_by_version():
    """Those of others are in the list, and what is built here from modules has the version of the image."""
    assert {service["image"].partition("@")[0] for service in CONTENT.values()} - OURS == IMAGES
    # Of services that build one image at the same time, one may fail, because another has made it.
    assert sorted(service["image"] for service in CONTENT.values() if "build" in service) == sorted(OURS)
    collector = (DEMO / "collector/go.mod").read_text()
    assert f"collector/otelcol v{_version('otel/opentelemetry-collector-contrib')}\n" in collector
    # Prometheus 3.N.P is version 0.3NN.P of its module; NN has two digits.
    major, minor, patch = _version("prom/prometheus").removeprefix("v").split(".")
    assert f"prometheus/prometheus v0.{major}{int(minor):02}.{patch} " in (DEMO / "prometheus/go.mod").read_text()


def _version(image):
    (found,) = [each for each in IMAGES if each.startswith(f"{image}:")]
    return found.partition(":")[2]


def test_what_is_mounted_is_committed():
    """Each mounted path, and each Dockerfile: Docker would make a folder of what is missing."""
    listed = run("git", "ls-files")
    for service in SERVICES.values():
        for source in service.mounts.values():
            assert source in DOCUMENT["volumes"] or re.search(
                f"(?m)^{re.escape(source.removeprefix('./'))}(/|$)", listed
            )
    files = {service["build"]["dockerfile"] for service in CONTENT.values() if "build" in service}
    assert all(f"\n{path}\n" in listed for path in files)
    assert files >= {str(path.relative_to(ROOT)) for path in (DEMO / "workers").iterdir()}


def test_names_and_ports_agree():
    """Whoever is called as NAME:PORT, in the compose file or in what it mounts, is a service that listens there."""
    files = [
        COMPOSE,
        *(path for path in (*DEMO.rglob("*"), *GRAFANA.rglob("*")) if path.suffix in {".yaml", ".yml", ".cfg"}),
    ]
    called = {
        (path.name, name, int(port))
        for path in files
        for name, port in re.findall(r"(?:[\"/ ]|:///)([a-z][a-z0-9-]+):(\d{4,5})\b", path.read_text())
    }
    assert {name for _, name, _ in called} >= {
        "gateway-1",
        "gateway-2",
        "bridge-rust",
        "jaeger",
        "worker-java",
        "queue",
    }
    assert [each for each in called if each[1] not in SERVICES or each[2] not in SERVICES[each[1]].ports] == []


def test_the_workers_are_of_all_languages():
    """Each worker is configured, and called for some policy."""
    workers, policies = ((DEMO / f"policies/{name}.yaml").read_text() for name in ("workers", "policies"))
    defined = {each["metadata"]["name"] for each in yaml.safe_load_all(workers)}
    called = {policy["worker"] for each in yaml.safe_load_all(policies) for policy in each["policies"]}
    assert defined == called == {name.removeprefix("worker-") for name in SERVICES if name.startswith("worker-")}


def test_grafana_finds_the_dashboards():
    """The folder in which the provider looks is the chart's, and the data sources are services."""
    (provider,) = yaml.safe_load((GRAFANA / "dashboards/dashboards.yaml").read_text())["providers"]
    dashboards = ROOT / SERVICES["grafana"].mounts[provider["options"]["path"]]
    assert dashboards == ROOT / "deploy/chart/dashboards"
    sources = yaml.safe_load((GRAFANA / "datasources/datasources.yaml").read_text())["datasources"]
    assert {source["url"].split(":")[1].lstrip("/") for source in sources} <= set(SERVICES)
