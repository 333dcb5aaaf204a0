"""The chart, rendered by helm; ``python -m tests.deploy.chart`` writes what is rendered for users and for tests."""

import subprocess
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy/chart"
VALUES = Path(__file__).parent / "values"
NAME = "admission-gateway"

RENDERED = {
    None: ROOT / f"deploy/manifests/{NAME}.yaml",
    **{each.stem: Path(__file__).parent / "rendered" / each.name for each in sorted(VALUES.glob("*.yaml"))},
}
"""The files with what is rendered: with the default values, and with those of each file of ``values``."""

RULES = ROOT / "deploy/prometheus/rules.yaml"
"""Prometheus' rules of the default values, for a Prometheus that no operator configures."""

MONITORING = "templates/monitoring.yaml"

_RULES_HEAD = "# Made by `make manifests` from deploy/chart: alerts.yaml, and objectives of the values.\n"

_HELM = Path(__file__).parent / "helm/bin/helm"


def helm(command, *arguments):
    """Run helm on the chart; the completed process."""
    assert _HELM.exists(), f"{_HELM} is not there: build it with `make build-helm`"
    placed = (CHART,) if command == "lint" else (NAME, CHART)
    line = [_HELM, command, *placed, "--namespace", NAME, *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def flags(values):
    """The flags for the values of this name; none for None."""
    return () if values is None else ("--values", VALUES / f"{values}.yaml")


def template(*arguments):
    """What helm renders with these flags."""
    done = helm("template", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rendered(values):
    """What helm renders with the values of this name: without hooks for kubectl, which would run them at once."""
    return template(*flags(values), *(("--no-hooks",) if values is None else ()))


def rules(*arguments):
    """The file of rules in the PrometheusRule that helm renders with these flags."""
    text = template("--set", "monitoring.prometheusRule.enabled=true", "--show-only", MONITORING, *arguments)
    (rule,) = [each for each in yaml.safe_load_all(text) if each["kind"] == "PrometheusRule"]
    return _RULES_HEAD + yaml.safe_dump(rule["spec"], sort_keys=False, width=120)


def main():
    """Write all files."""
    RULES.write_text(rules())
    for values, path in RENDERED.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(rendered(values))


if __name__ == "__main__":
    main()
