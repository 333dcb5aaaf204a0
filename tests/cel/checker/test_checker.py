"""Types of expressions, and what the checker says of those that have none."""

import pytest

from gateway.cel.environment import Environment
from gateway.cel.versions import Version
from tests.cel.evaluation import issues

ENVIRONMENT = Environment(
    {"d": "dyn", "i": "int", "s": "string", "l": "list(int)", "m": "map(string, int)", "p": "a.Pod", "a.b": "bool"}
    | {"o": "optional_type(string)", "t": "timestamp", "n": "null"},
    messages={"a.Pod": {"name": "string", "labels": "map(string, string)", "owner": "a.Pod", "since": "timestamp"}},
)


def kind(expression):
    """The type of an expression."""
    return str(ENVIRONMENT.compile(expression).result)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1", "int"),
        ("1u", "uint"),
        ("1.0", "double"),
        ("'a'", "string"),
        ("b'a'", "bytes"),
        ("true", "bool"),
        ("null", "null_type"),
        ("int", "type(int)"),
        ("type(1)", "type(int)"),
        ("google.protobuf.Duration", "type(google.protobuf.Duration)"),
        ("[]", "list(dyn)"),
        ("[1]", "list(int)"),
        ("{}", "map(dyn, dyn)"),
        ("{'a': 1}", "map(string, int)"),
        ("i + 1", "int"),
        ("s + s", "string"),
        ("l + []", "list(int)"),
        ("d + 1", "int"),
        ("d + d", "dyn"),
        ("t - t", "google.protobuf.Duration"),
        ("l[0]", "int"),
        ("m['a']", "int"),
        ("m.a", "int"),
        ("d.a.b", "dyn"),
        ("p.name", "string"),
        ("p.owner.owner.labels.x", "string"),
        ("has(p.owner)", "bool"),
        ("a.b", "bool"),
        (".a.b", "bool"),
        ("o.value()", "string"),
        ("o.orValue('x')", "string"),
        ("m.?a", "optional_type(int)"),
        ("m[?'a']", "optional_type(int)"),
        ("l[?0]", "optional_type(int)"),
        ("p.?owner.name", "optional_type(string)"),
        ("[?o]", "list(string)"),
        ("{?'a': o}", "map(string, string)"),
        ("true ? i : d", "dyn"),
        ("true ? null : t", "null_type"),
        ("l.map(x, string(x))", "list(string)"),
        ("l.filter(x, x > 1)", "list(int)"),
        ("m.map(k, k)", "list(string)"),
        ("l.transformList(j, x, [j, x])", "list(list(int))"),
        ("m.transformMap(k, v, string(v))", "map(string, string)"),
        ("l.all(x, x > 0)", "bool"),
        ("o.optMap(x, x.size())", "optional_type(int)"),
        ("l.sortBy(x, -x)", "list(int)"),
        ("google.protobuf.Int64Value{value: 1}", "int"),
        ("d == 1 || i == d", "bool"),
        ("[].map(x, x)", "list(dyn)"),
    ],
)
def test_an_expression_has_a_type(expression, expected):
    """That of cel-go's checker."""
    assert kind(expression) == expected


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("nope", "1:1: undeclared reference to 'nope' (in container '')"),
        ("nope()", "1:5: undeclared reference to 'nope' (in container '')"),
        ("i.nope()", "1:7: undeclared reference to 'nope' (in container '')"),
        ("nope.a.b", "1:1: undeclared reference to 'nope' (in container '')"),
        ("p.nope", "1:2: undefined field 'nope'"),
        ("has(p.nope)", "1:4: undefined field 'nope'"),
        ("i.a", "1:2: type 'int' does not support field selection"),
        ("l.a", "1:2: type 'list(int)' does not support field selection"),
        ("i + s", "1:3: found no matching overload for '_+_' applied to '(int, string)'"),
        ("i == s", "1:3: found no matching overload for '_==_' applied to '(int, string)'"),
        ("s.size(1)", "1:7: found no matching overload for 'size' applied to 'string.(int)'"),
        ("size(1)", "1:5: found no matching overload for 'size' applied to '(int)'"),
        ("l[s]", "1:2: found no matching overload for '_[_]' applied to '(list(int), string)'"),
        ("i ? 1 : 2", "1:3: found no matching overload for '_?_:_' applied to '(int, int, int)'"),
        ("true ? i : s", "1:6: found no matching overload for '_?_:_' applied to '(bool, int, string)'"),
        ("!i", "1:1: found no matching overload for '!_' applied to '(int)'"),
        ("i && true", "1:1: expected type 'bool' but found 'int'"),
        ("true || s", "1:9: expected type 'bool' but found 'string'"),
        ("t + t", "1:3: found no matching overload for '_+_' applied to '(timestamp, timestamp)'"),
        ("n + 1", "1:3: found no matching overload for '_+_' applied to '(null, int)'"),
        ("[?1]", "1:3: expected type 'optional_type(int)' but found 'int'"),
        ("{?'a': 1}", "1:8: expected type 'optional_type(int)' but found 'int'"),
        (
            "i.all(x, true)",
            "1:1: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
        ("l.all(x, x)", "1:10: expected type 'bool' but found 'int'"),
    ],
)
def test_what_has_no_type_is_an_error(expression, problem):
    """At its place, in cel-go's words."""
    assert issues(expression, ENVIRONMENT) == [problem]


def test_one_error_is_reported_once():
    """What cannot be typed goes with everything, so that nothing follows from it."""
    assert len(issues("nope + 1 > 0 && nope2.f", ENVIRONMENT)) == 2


def test_what_a_macro_uses_twice_is_said_twice():
    """As cel-go does, which copies it."""
    assert len(issues("nope.optMap(x, x)", ENVIRONMENT)) == 2


def test_problems_that_double_at_every_link_are_bounded():
    """A hundred are shown, and at most some thousands counted."""
    assert len(issues("nope" + ".optMap(x, nope)" * 14, ENVIRONMENT)) == 101


def test_a_local_variable_hides_one_of_the_environment():
    """Within its comprehension only."""
    program = ENVIRONMENT.compile("l.all(i, i > 0) && i == 5")
    assert program.variables == ("i", "l")
    assert ENVIRONMENT.compile("l.all(i, i > 0)").variables == ("l",)


def test_only_variables_that_are_named_are_wanted():
    """In the order of their names."""
    assert ENVIRONMENT.compile("s == 'a' && (d.x || a.b)").variables == ("a.b", "d", "s")


def test_a_name_with_dots_is_a_variable_before_it_is_a_member():
    """The longest name that is declared."""
    assert ENVIRONMENT.compile("a.b").variables == ("a.b",)


# ------------------------------------------------------------------------------------------------- versions
@pytest.mark.parametrize(
    ("expression", "since"),
    [
        ("quantity('1').isInteger()", 28),
        ("'%s'.format(['a']) == 'a'", 29),
        ("strings.quote('a') == ''", 29),
        ("sets.contains([1], [1])", 29),
        ("isIP('::1')", 30),
        ("isCIDR('::/0')", 30),
        ("format.dns1123Label().validate('a').hasValue()", 31),
        ("[1].all(j, x, j < x)", 32),
        ("{'a': 1}.transformMap(k, v, v) == {}", 32),
        ("isSemver('1.2.3')", 33),
        ("[1].sort() == [1]", 34),
        ("[1].sortBy(x, x) == [1]", 34),
        ("lists.range(1) == [0]", 34),
        ("[1].first().hasValue()", 34),
    ],
)
def test_a_function_is_there_from_its_version_on(expression, since):
    """In an older one it is undeclared, as is the name of a macro."""
    for minor in range(28, 37):
        found = issues(expression, Environment({}, version=Version(1, minor)))
        assert bool(found) == (minor < since), (minor, found)


def test_names_of_types_come_with_their_library():
    """Before, they are undeclared."""
    assert issues("type(1) == net.IP", Environment({}, version=Version(1, 29))) != []
    assert issues("type(1) == net.IP", Environment({}, version=Version(1, 30))) == []


def test_every_version_compiles_what_the_one_before_did():
    """Nothing is taken away."""
    expressions = ["'a'.startsWith('b')", "url('/').getHost() == ''", "[1].sum() == 1", "optional.none().hasValue()"]
    for minor in range(28, 37):
        environment = Environment({}, version=Version(1, minor))
        assert [issues(each, environment) for each in expressions] == [[]] * 4
