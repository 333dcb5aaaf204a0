"""What a gateway registers of a configuration with errors."""

from gateway.registration.entries import make_entries
from gateway.serving.self_registration import _incomplete, _sound
from tests.integration.running import configuration, policy, source


def test_policies_with_an_error_are_not_registered():
    """In their strictest reading they might match everything; those without are, and nothing is unregistered."""
    broken = policy("broken", isolate=True, rules="none", failurePolicy="Fail")
    found = configuration(source(workers={"scripted": "127.0.0.1:1"}, mutating=[policy("sound"), broken]))
    entries = make_entries(found)
    assert [entry.name for entry in entries.mutating] == ["chain.sound.test.example.com", "broken.test.example.com"]
    assert [entry.name for entry in _sound(entries).mutating] == ["chain.sound.test.example.com"]
    assert "no webhook is unregistered" in _incomplete(found)


def test_a_configuration_without_errors_is_registered_as_it_is():
    """Other webhooks go."""
    found = configuration(source(workers={"scripted": "127.0.0.1:1"}, validating=[policy("sound")]))
    entries = make_entries(found)
    assert _sound(entries) == entries
    assert _incomplete(found) == ""
