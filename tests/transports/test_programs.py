"""What hooks see of the gateway's environment."""

from gateway.transports.programs import clean_environment

OWN = {
    "PATH": "/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "TMPDIR": "/scratch",
    "KUBERNETES_SERVICE_HOST": "10.0.0.1",
    "KUBERNETES_SERVICE_PORT": "443",
    "ADMISSION_GATEWAY_REDIS": "redis://:secret@redis",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "PYTHONPATH": "/ours",
    "LD_PRELOAD": "/ours.so",
    "VALIDATING_WEBHOOK_CONFIGURATION_NAME": "hooks",
}


def test_only_what_every_program_needs_is_passed_on():
    """And the way to the API server; no secret, and nothing that is only for us."""
    names = {"PATH", "HOME", "LANG", "TMPDIR", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"}
    assert clean_environment(own=OWN) == {name: OWN[name] for name in names}


def test_what_the_contract_names_is_added():
    """Given variables go before our own."""
    assert clean_environment({"PATH": "/hooks", "METRICS_PATH": "/m"}, own=OWN)["PATH"] == "/hooks"


def test_there_is_always_a_path():
    """A shell finds its commands though we were started without one."""
    assert "/bin" in clean_environment(own={})["PATH"]


def test_the_real_environment_is_meant_by_default(monkeypatch):
    """Of this process."""
    monkeypatch.setenv("TMPDIR", "/scratch")
    monkeypatch.setenv("SECRET", "1")
    assert clean_environment()["TMPDIR"] == "/scratch"
    assert "SECRET" not in clean_environment()
