"""What an environment declares."""

from gateway.cel.checker.declarations import declare
from gateway.cel.libraries.catalog import functions_of
from gateway.cel.values import types
from gateway.cel.values.types import list_of, message, type_of_type
from gateway.cel.versions import NEWEST, Version


def declared(variables=None, messages=None, version=NEWEST):
    return declare(variables or {}, messages or {}, functions_of(version))


def test_a_variable_has_the_type_that_is_written():
    """Whatever it is called."""
    assert declared({"a.b": "list(int)"}).names["a.b"] == list_of(types.INT)


def test_a_message_is_a_type_with_members():
    """Its name stands for the type."""
    found = declared(messages={"a.Pod": {"name": "string"}})
    assert found.names["a.Pod"] == type_of_type(message("a.Pod"))
    assert found.members["a.Pod"] == {"name": types.STRING}


def test_a_variable_hides_a_type_of_the_same_name():
    """As the later declaration."""
    assert declared({"int": "string"}).names["int"] == types.STRING


def test_well_known_messages_are_always_there():
    """With their members."""
    assert declared().members["google.protobuf.Duration"].keys() == {"seconds", "nanos"}


def test_a_librarys_types_are_there_if_its_functions_are():
    """``net.IP`` from 1.30 on."""
    assert "net.IP" in declared(version=Version(1, 30)).names
    assert "net.IP" not in declared(version=Version(1, 29)).names


def test_variables_differ_from_types():
    """Only they have values."""
    assert declared({"a": "dyn"}).variables == {"a"}
