"""Locks pin exact versions with hashes, name no registry, and all that they pin is in the bill of materials."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from deploy.dependencies import audit, locks, sbom
from deploy.dependencies.locks import CARGO, GO, LOCKS, MAVEN, NPM, REQUIREMENTS, ROOT

PROJECTS = ROOT / "gateway/cli/projects"
TEMPLATES = tuple(str(path.relative_to(ROOT)) for path in PROJECTS.glob("python/requirements*.tmpl"))
POM = (*MAVEN, *(str(path.relative_to(ROOT)) for path in PROJECTS.glob("java/pom.xml*")))

EXACT = re.compile(r"v?\d+(\.\d+)*([.+-][\w.+-]+)?")

IGNORED = ("node_modules", ".venv", ".run", "target", "bin")


def text(lock):
    return (ROOT / lock).read_text()


def purls():
    return {each["purl"] for each in sbom.project_bill()["components"]}


# ------------------------------------------------------------------------------------------------------- locks


def test_every_lock_is_known():
    """None of the tree's is missing in the list, so none is missing in the bill of materials or the audit."""
    names = {"package-lock.json", "go.mod", "pom.xml", "Cargo.toml"}
    found = {
        path.relative_to(ROOT).as_posix()
        for name in names
        for path in ROOT.rglob(name)
        if not {*path.relative_to(ROOT).parts} & {*IGNORED}
    }
    found |= {path.relative_to(ROOT).as_posix() for path in (ROOT / "requirements").glob("*.txt")}
    assert found | {"NOTICE"} == {*LOCKS}


@pytest.mark.parametrize("lock", [*REQUIREMENTS, *TEMPLATES])
def test_a_requirement_has_its_version_and_hashes(lock):
    """Each: pip's --require-hashes then refuses what is not locked, and files that are not those of the lock."""
    entries = re.split(r"(?m)^(?=[A-Za-z0-9])", re.sub(r"(?m)^ *#.*\n", "", text(lock)))[1:]
    assert entries
    for entry in entries:
        assert re.match(r"[\w.-]+==[\w.+!-]+ *(;[^\\]*)?\\\n( +--hash=sha256:[0-9a-f]{64}( \\)?\n)+$", entry), entry


@pytest.mark.parametrize("lock", REQUIREMENTS)
def test_every_requirement_is_locked(lock):
    """What its .in names; `make lock` makes all of them."""
    wanted = re.findall(r"(?m)^([A-Za-z][\w.-]*)", text(lock.replace(".txt", ".in")))
    assert wanted
    known = set(re.findall(r"(?m)^([A-Za-z][\w.-]*)==", text(lock)))
    assert re.search(rf"(?m)^\t@for name in [a-z ]*\b{lock[13:-4]}\b", text("Makefile"))
    assert {each.lower() for each in wanted} <= known


@pytest.mark.parametrize("lock", NPM)
def test_a_package_of_npm_has_its_version_and_hash(lock):
    """Each: `npm ci` refuses what differs."""
    packages = json.loads(text(lock))["packages"]
    for path, package in packages.items():
        if path and not package.get("link"):
            assert EXACT.fullmatch(package["version"]), path
            assert package["integrity"].startswith("sha512-"), path
    manifest = json.loads(text(lock.replace("package-lock", "package")))
    assert all(EXACT.fullmatch(version) for version in manifest["devDependencies"].values())


@pytest.mark.parametrize("lock", GO)
def test_a_module_of_go_has_its_hash(lock):
    """Each that go.mod requires, in go.sum."""
    sums = dict(re.findall(r"(?m)^(\S+ \S+) (h1:[\w+/=]{44})$", text(lock.replace("go.mod", "go.sum"))))
    of_lock = [each for each in locks.packages() if each.lock == lock]
    assert of_lock
    for each in of_lock:
        assert f"{each.name} {each.version}/go.mod" in sums, each


@pytest.mark.parametrize("lock", POM)
def test_a_dependency_of_maven_has_an_exact_version(lock):
    """No range, no SNAPSHOT, no word; what has no version here has it in the parent."""
    versions = re.findall(r"<version>([^<]+)</version>|<[\w.]+\.version>([^<]+)<", text(lock))
    assert versions
    for version in (one or other for one, other in versions):
        assert version.startswith(("${", "@")) or (EXACT.fullmatch(version) and "SNAPSHOT" not in version), version


def test_every_plugin_of_mavens_lifecycle_is_pinned():
    """Without a version, Maven's own release decides which is used."""
    managed = text(MAVEN[0])
    for name in ("clean", "compiler", "install", "jar", "resources", "surefire"):
        assert f"<artifactId>maven-{name}-plugin</artifactId>" in managed


def test_an_artifact_of_maven_has_its_hash():
    """Maven 3.9 refuses another file of this name; what is not in the list it would take, so all of ours are in it."""
    known = dict(line.split("  ")[::-1] for line in text("workers/java/.mvn/checksums/checksums.sha256").splitlines())
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in known.values())
    for each in locks.packages():
        if each.kind == "maven":
            group, name = each.name.split("/")
            path = f"{group.replace('.', '/')}/{name}/{each.version}/{name}-{each.version}"
            # A dependency that only has others, such as junit-jupiter's, has a jar, too.
            assert {f"{path}.pom", f"{path}.jar"} <= known.keys(), each
    flags = text("workers/java/.mvn/maven.config").split()
    assert "--strict-checksums" in flags
    assert "-Daether.artifactResolver.postProcessor.trustedChecksums=true" in flags


@pytest.mark.parametrize("lock", CARGO)
def test_a_crate_has_an_exact_version(lock):
    """`=1.2.3`: there is no Cargo.lock, which would name a registry and bind the programs that use the SDK."""
    manifest = tomllib.loads(text(lock))
    for section in ("dependencies", "dev-dependencies", "build-dependencies"):
        for name, wanted in manifest.get(section, {}).items():
            known = {"version": wanted} if isinstance(wanted, str) else wanted
            assert "path" in known or re.fullmatch(r"=\d+\.\d+\.\d+", known["version"]), name
            assert not {"git", "registry"} & known.keys(), name


ALLOWED = ("http://maven.apache.org/", "https://maven.apache.org/", "http://www.w3.org/", "https://www.apache.org/")
"""Namespaces and the licence of a pom."""


@pytest.mark.parametrize("lock", [*LOCKS, *TEMPLATES, *(lock.replace("go.mod", "go.sum") for lock in GO)])
def test_a_lock_names_no_registry(lock):
    """Which one is asked is the business of each machine: pip.conf, .npmrc, GOPROXY, settings.xml, Cargo's config."""
    content = text(lock)
    if lock.endswith("package-lock.json"):
        assert "resolved" not in content
        content = re.sub(r'"url": "[^"]*"', "", content)  # of funding
    assert [url for url in re.findall(r"\w+://\S+", content) if not url.startswith(ALLOWED)] == []
    settings = r"index-url|find-links|trusted-host|<(pluginR|r)epositories>|distributionManagement|\[source"
    assert not re.search(settings, content)


def images():
    """The images that Dockerfiles begin with, and that docker-compose.yml runs, but for our own."""
    for path in (ROOT / "deploy").rglob("*Dockerfile"):
        yield from re.findall(r"(?m)^(?:FROM(?: --\S+)?|ARG PYTHON=)\s*([^\s$]+)", path.read_text())
    yield from re.findall(r"(?m)^ +image: (\S+:\S+)", text("docker-compose.yml"))


def test_an_image_is_pinned():
    """By its digest, or by a version of three numbers; SECURITY.md names each, which is to be renewed."""
    security, found = text("SECURITY.md"), {*images()}
    assert {"redis", "python", "gcr.io/distroless/static-debian12"} <= {each.partition(":")[0] for each in found}
    for each in found:
        name, _, tag = each.partition("@")[0].partition(":")
        exact = re.fullmatch(r"v?\d+\.\d+\.\d+", tag)
        assert exact or re.search(r"@sha256:[0-9a-f]{64}$", each), each
        written = (
            name if exact else name.removeprefix("gcr.io/distroless/") if "distroless" in name else f"{name}:{tag}"
        )
        assert f"`{written}`" in security.replace("gcr.io/distroless/static-debian12:nonroot", "static-debian12"), each


# -------------------------------------------------------------------------------------------- bill of materials


def required_modules(lock):
    """The package URLs of what a go.mod requires and does not replace."""
    lines = [line.split() for line in text(lock).splitlines()]
    replaced = {words[words[0] == "replace"] for words in lines if "=>" in words}
    wanted = [words[words[0] == "require" :] for words in lines if words and "=>" not in words]
    return {
        f"pkg:golang/{words[0]}@{words[1]}"
        for words in wanted
        if len(words) > 1 and re.fullmatch(r"v\d\S*", words[1]) and words[0] not in replaced
    }


def test_all_that_is_locked_is_in_the_bill():
    """Counted anew, by other expressions than those that made it."""
    found = purls()
    for lock in REQUIREMENTS:
        for name, version in re.findall(r"(?m)^(\S+)==(\S+) ", text(lock)):
            assert f"pkg:pypi/{name.lower().replace('_', '-').replace('.', '-')}@{version}" in found
    for lock in NPM:
        for path, package in json.loads(text(lock))["packages"].items():
            name = path.split("node_modules/")[-1]
            assert not path or f"pkg:npm/{name.replace('@', '%40')}@{package['version']}" in found
    for lock in GO:
        assert required_modules(lock) <= found
    for lock in CARGO:
        for name, version in re.findall(r'(?m)^([\w-]+) = (?:\{ version = )?"=([\d.]+)"', text(lock)):
            assert f"pkg:cargo/{name}@{version}" in found
    artifacts = {each.partition("@")[0].rpartition("/")[2] for each in found if each.startswith("pkg:maven/")}
    for lock in MAVEN:
        named = set(re.findall(r"<artifactId>([^<]+)<", text(lock)))
        # Ours, and what is excluded from others.
        ours = {"admission-worker-parent", "admission-worker", "samples", "exporting", "protobuf-java-util", "gson"}
        assert named - ours <= artifacts
    assert "pkg:npm/uplot@1.6.32" in found


def test_the_bill_says_what_is_shipped():
    """The image's packages are required; what only tests and builds need is excluded."""
    scopes = {each["purl"].partition("@")[0]: each["scope"] for each in sbom.project_bill()["components"]}
    required = ("pypi/aiohttp", "npm/uplot", "golang/google.golang.org/grpc", "cargo/tonic", "maven/io.grpc/grpc-api")
    excluded = (
        "pypi/pytest",
        "pypi/atheris",
        "pypi/pip-audit",
        "npm/typescript",
        "golang/github.com/spf13/pflag",
        "maven/org.junit.jupiter/junit-jupiter",
        "maven/io.opentelemetry/opentelemetry-sdk-testing",
        "maven/io.opentelemetry/opentelemetry-exporter-otlp",
        "golang/go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc",
    )
    assert {scopes[f"pkg:{name}"] for name in required} == {"required"}
    assert {scopes[f"pkg:{name}"] for name in excluded} == {"excluded"}


def test_the_bill_is_reproducible_and_names_no_host():
    """Equal locks make equal bytes, and another version another serial number."""
    one, other = sbom.project_bill(), sbom.project_bill()
    assert json.dumps(one) == json.dumps(other)
    found = locks.packages()
    assert (
        sbom.bill(found, name="a", version="1")["serialNumber"]
        != sbom.bill(found[1:], name="a", version="1")["serialNumber"]
    )
    assert len(purls()) == len(one["components"])
    assert "://" not in json.dumps(one)


def test_an_inexact_crate_is_an_error(tmp_path):
    """The bill would be wrong about it."""
    for lock in LOCKS:
        (tmp_path / lock).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / lock).write_text(text(lock))
    path = tmp_path / CARGO[0]
    path.write_text(path.read_text().replace('bytes = "=', 'bytes = "'))
    with pytest.raises(ValueError, match="bytes: expected an exact version"):
        locks.packages(tmp_path)


# ----------------------------------------------------------------------------------------------------- the audit


def answers(given):
    """A machine whose clients answer this, by command or by command and folder; the others are not installed."""

    def ask(command, folder):
        name = " ".join(command[:2]) if command[0] in {"npm", "cargo"} else command[0]
        last = f"{name} {command[-1]}"
        for key in ((name, folder), last, name):
            if key in given:
                return given[key]
        return audit.Answer(code=None, error=f"{command[0]} is not installed")

    return ask


NOTHING = {
    "pip-audit": audit.Answer(code=0),
    "govulncheck": audit.Answer(code=0),
    "npm audit": audit.Answer(code=0),
    "cargo audit": audit.Answer(code=0),
}


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (NOTHING, 0, "none known"),
        ({}, 2, "pip-audit is not installed"),
        (NOTHING | {"npm audit": audit.Answer(code=1, out="3 vulnerabilities (1 high)")}, 1, "3 vulnerabilities"),
        (
            NOTHING | {"npm audit": audit.Answer(code=1, error="npm error audit endpoint returned an error")},
            2,
            "endpoint",
        ),
        (
            NOTHING | {"pip-audit": audit.Answer(code=1, error="ERROR:pip_audit._cli:x: Dependency not found on PyPI")},
            2,
            "not found on PyPI",
        ),
        (NOTHING | {"govulncheck": audit.Answer(code=3, out="Vulnerability #1: GO-1")}, 1, "GO-1"),
        ({"cargo audit": audit.Answer(code=1, out="ID: RUSTSEC-2026-1")}, 1, "RUSTSEC-2026-1"),
    ],
)
def test_the_exit_code_of_an_audit(given, code, said):
    """1: something is vulnerable, whatever else could not be asked; 2: something could not be asked."""
    lines, found = audit.audited(answers(given))
    assert found == code
    assert any(said in result for _, _, result in lines)
    assert len(lines) == len(audit.AUDITS)
    assert all("--strict" in each.command for each in audit.AUDITS if each.name == "pip-audit")


def unchanged(**others):
    """What uv says if each lock is the newest, but for these packages."""
    found = {}
    for lock in REQUIREMENTS:
        pins = [f"{each.name}=={others.get(each.name, each.version)}" for each in locks.packages() if each.lock == lock]
        found[f"uv {lock[13:].replace('.txt', '.in')}"] = audit.Answer(code=0, out="\n".join(pins))
    return found


def test_what_is_compared_are_the_pins():
    """Of every lock, whatever is installed here; of what other modules know besides, nothing."""
    rows, unknown = audit.compared(answers(unchanged(atheris="9.9", **{"pip-audit": "9.8", "aiohttp": "9.7"})))
    assert {(row.name, row.newest, row.lock) for row in rows} == {
        ("atheris", "9.9", "requirements/fuzz.txt"),
        ("pip-audit", "9.8", "requirements/audit.txt"),
        ("aiohttp", "9.7", "requirements/run.txt"),
        ("aiohttp", "9.7", "requirements/dev.txt"),
    }
    assert "uv pip compile" not in unknown
    lock = "workers/go/go.mod"
    indirect = re.search(r"(?m)^\t(\S+) (v\S+) // indirect$", text(lock))
    listed = f"{indirect[1]} {indirect[2]} v9.9.9\nexample.com/other v1.0.0 v2.0.0\n\n"
    go = {("go", str(Path(each).parent)): audit.Answer(code=0, out=listed if each == lock else "") for each in GO}
    rows, _ = audit.compared(answers(go))
    assert [(row.name, row.newest, row.lock) for row in rows] == [(indirect[1], "v9.9.9", lock)]
    of_time = audit.Answer(code=0, error="      Adding time v0.3.45 (available: v0.3.55)\n")
    for lock in CARGO:
        name, version = next((each.name, each.version) for each in locks.packages() if each.lock == lock)
        own = audit.Answer(code=0, error=f"   Unchanged {name} v{version} (available: v99.0.0)\n")
        given = {"cargo update": of_time, ("cargo update", str(Path(lock).parent)): own}
        rows, _ = audit.compared(answers(given))
        assert [(row.name, row.lock) for row in rows] == [(name, lock)]


def test_pins_are_compared_with_the_newest(capsys):
    """By what each client prints; of one that cannot, why."""
    upgrades = audit.Answer(
        code=0,
        error="    Updating crates.io index\n      Adding bytes v1.12.1 (available: v1.12.2)\n"
        "      Adding time v0.3.45 (available: v0.3.55, requires Rust 1.88.0)\n"
        "      Adding tonic v0.14.1 (available: v0.14.2)\n",
    )
    outdated = audit.Answer(
        code=1, out=json.dumps({"ajv": {"current": "8.20.0", "wanted": "8.20.0", "latest": "9.0.0"}})
    )
    mvn = audit.Answer(
        code=0,
        out="[INFO]   com.google.re2j:re2j ................................ 1.7 -> 1.8\n"
        "[INFO]   com.fasterxml.jackson.core:jackson-databind ..........\n"
        "[INFO]                                               2.21.0 -> 2.22.0\n",
    )
    given = NOTHING | {"cargo update": upgrades, "npm outdated": outdated, "mvn": mvn, **unchanged()}
    assert audit.main(answers(given)) == 0
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    for row in (
        ["cargo", "bytes", "1.12.1", "1.12.2"],
        ["cargo", "tonic", "0.14.1", "0.14.2"],
        ["npm", "ajv", "8.20.0", "9.0.0"],
        ["maven", "com.google.re2j:re2j", "1.7", "1.8"],
        ["maven", "com.fasterxml.jackson.core:jackson-databind", "2.21.0", "2.22.0"],
    ):
        assert row in [line[:4] for line in printed]
    assert ["not", "compared:", "go", "list", "-m", "-u:", "go", "is", "not", "installed"] in printed
