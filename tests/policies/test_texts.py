"""Texts: what YAML and JSON say, where each stops, and what can hurt in them."""

import json
import math

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gateway.policies.decoding import yaml_text
from gateway.policies.decoding.nodes import MAX_COST, MAX_DEPTH, Broken, Duplicate, Node
from gateway.policies.decoding.texts import SourceText, read_documents


def plain(node):
    """A node's value without lines."""
    match node.value:
        case dict():
            return {name: plain(child) for name, child in node.value.items()}
        case list():
            return [plain(child) for child in node.value]
        case _:
            return node.value


def read(text, name="a.yaml"):
    """The documents' plain values, and what stopped the reading, as (line, message)."""
    content = text if isinstance(text, bytes) else text.encode()
    nodes, error = read_documents(SourceText(name=name, content=content))
    return [plain(node) for node in nodes], error and (error.line, str(error))


LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
    ),
    max_leaves=12,
)


@pytest.mark.property
@given(VALUES.filter(lambda value: value is not None))
def test_json_round_trip(value):
    """Whatever Python writes as JSON is read as it was, in a file of any name if it is an object."""
    text = json.dumps(value, indent="\t")
    assert read(text, "a.json") == ([value], None)
    if isinstance(value, dict):
        assert read(text, "a.yaml") == ([value], None)


@pytest.mark.property
@given(VALUES.filter(lambda value: value is not None), st.booleans())
def test_yaml_round_trip(value, flow):
    """Whatever PyYAML writes is read as it was."""
    text = yaml.safe_dump(value, default_flow_style=flow)
    assert read("---\n" + text) == ([value], None)


@pytest.mark.property
@given(st.text(st.characters(codec="ascii", exclude_characters="\0"), max_size=12))
def test_scalars_as_pyyaml(text):
    """A scalar means what PyYAML's SafeLoader takes it for, timestamps excepted."""
    try:
        (expected,) = yaml.load(f"[ {text} ]", Loader=LOADER)  # noqa: S506 - the oracle is a SafeLoader
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError, OverflowError):
        return
    assume(isinstance(expected, str | int | float | bool | None) and expected not in {math.inf, -math.inf})
    assume(not (isinstance(expected, float) and math.isnan(expected)))
    documents, error = read(f"[ {text} ]")
    assert error is None
    assert documents == [[expected]]
    assert type(documents[0][0]) is type(expected)


@settings(max_examples=settings.default.max_examples // 4)  # a case writes and reads four documents
@pytest.mark.property
@given(st.lists(VALUES.filter(lambda value: value is not None), max_size=4))
def test_several_documents(values):
    """Documents follow one another: in YAML between dashes, in JSON just so, as kubectl reads them."""
    assert read(yaml.safe_dump_all(values, explicit_start=True)) == (values, None)
    assert read("\n".join(map(json.dumps, values)), "a.json") == (values, None)


@pytest.mark.parametrize("text", ["2020-01-01", "2001-12-14 21:59:43.10 -5", "!!timestamp 2020-01-01"])
def test_timestamps(text):
    """A timestamp stays the string that it is written as: JSON has none."""
    assert read(f"[{text}]")[0] == [[text.removeprefix("!!timestamp ")]]


def test_yaml_in_braces():
    """A YAML text may begin with a brace as well; of its errors, the later one is reported."""
    assert read("{a: 1, # comment\n b: [x]}") == ([{"a": 1, "b": ["x"]}], None)
    assert read('{"a": 1,\n"b": [}')[1][0] == 2


def test_json_that_is_no_yaml():
    """Tabs, escaped surrogate pairs and exponents are JSON, and mean in a .yaml file what they mean in JSON."""
    assert read('{\t"a": "\\ud83d\\ude00\\/",\n\t"b": 1e3}') == ([{"a": "😀/", "b": 1000.0}], None)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("[1, 2", 1, "expected a comma or the end of the container, found the end of the text"),
        ("[1,]", 1, "expected a value, found ']'"),
        ("{,}", 1, "expected a string or }, found ','"),
        ('{"a" 1}', 1, "expected a colon, found '1'"),
        ('{"a":\n\n1,}', 3, "expected a string, found '}'"),
        ("{1: 2}", 1, "expected a string or }, found '1'"),
        ("[1 2]", 1, "expected a comma or the end of the container, found '2'"),
        ("[01]", 1, "expected a comma or the end of the container, found '1'"),
        ("[1.]", 1, "expected a comma or the end of the container, found '.]'"),
        ("[NaN]", 1, "expected a value or ], found 'NaN]'"),
        ("[1}", 1, "expected a comma or the end of the container, found '}'"),
        ("]", 1, "expected a value, found ']'"),
        ('["a\nb"]', 1, "not a JSON string: Invalid control character at: line 1 column 3 (char 2)"),
        ('["\\x"]', 1, "not a JSON string: Invalid \\escape: line 1 column 2 (char 1)"),
        ("[1] x", 1, "expected a value, found 'x'"),
    ],
)
def test_broken_json(text, line, message):
    """The error for invalid JSON has the position, what was expected, and what was found."""
    assert read(text, "a.json")[1] == (line, message)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: [", 3, "while parsing a flow node"),
        ("a:\n\tb: 1", 2, "cannot start any token"),
        ("a: 1\n  b: 2", 2, "mapping values are not allowed"),
        ("a: 'x", 1, "while scanning a quoted scalar: found unexpected end of stream"),
        ("a: *b", 1, "found undefined alias 'b'"),
        ("a: 1\nb: &x [1, *x]", 2, "alias 'x' stands inside of what it refers to"),
        ("a: b\nc: \x01", 2, "unacceptable character: control characters are not allowed"),
        (b"a: 1\nb: \xff", 2, "not UTF-8: byte 0xff at offset 8: invalid start byte"),
        ("a: 1".encode("utf-16"), 1, "the text is UTF-16; save it as UTF-8"),
        (b"\xef\xbb\xbfa: 1", 1, "the text begins with a byte order mark; save it as UTF-8 without one"),
        ("%YAML 3.0\n---\na: 1", 1, "found incompatible YAML document"),
    ],
)
def test_broken_yaml(text, line, words):
    """The error for invalid YAML has the position, and PyYAML's message."""
    found_line, message = read(text)[1]
    assert (found_line, words in message) == (line, True), message


def test_what_came_before():
    """The documents before an error are read, so that their errors are reported as well."""
    assert read("a: 1\n---\nb: [") == ([{"a": 1}], read("a: 1\n---\nb: [")[1])
    assert read('{"a": 1}\n{"b": ]', "a.json")[0] == [{"a": 1}]


def test_duplicates_know_the_first():
    """The second of two members of one name is no value, and says in which line the first stands; so does a third."""
    (nodes, error) = read_documents(SourceText(name="a.yaml", content=b"a: 1\na: 2\na: 3\n"))
    assert error is None
    assert nodes[0].value == {"a": Node(Duplicate(first=1), 3)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a: !!python/object:os.system x",
            "has the tag 'tag:yaml.org,2002:python/object:os.system', which JSON has no value for",
        ),
        ("a: !mine {b: 1}", "has the tag '!mine', which JSON has no value for"),
        ("a: !!int x", "has the tag 'tag:yaml.org,2002:int', but is not written like one"),
        ("a: !!float ''", "has the tag 'tag:yaml.org,2002:float', but is not written like one"),
        ("a: !!bool 5", "has the tag 'tag:yaml.org,2002:bool', but is not written like one"),
        ("a: " + "1" * 401, "is a number of more than 400 characters"),
        ("a: " + ":".join(["1"] * 300), "is a number of more than 400 characters"),
        ("a: <<", "a merge key (<<) can only be the name of a member; quote it to mean the text"),
        ('{"a": "\\ud800"}', "is not Unicode: it holds half of a surrogate pair"),
    ],
)
def test_broken_values(text, message):
    """A value that cannot be taken says so where it stands, and the rest of the text is read."""
    assert read(text) == ([{"a": Broken(message=message)}], None)


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("1: a", "1", "must be a string, not integer"),
        ("on: a", "True", "must be a string, not boolean"),
        ("~: a", "None", "must be a string, not null"),
        ("[x]: a", "?", "must be a string, not array"),
        ("{x: y}: a", "?", "must be a string, not object"),
        ("!mine x: a", "?", "has the tag '!mine'"),
    ],
)
def test_names_that_are_no_strings(text, name, words):
    """A name must be a string: the error is at the member."""
    ((document,), error) = read(text)
    assert error is None
    assert list(document) == [name]
    assert words in document[name].message


def test_merge_keys():
    """Merge keys work as in YAML 1.1: what is written wins, then the earlier of several."""
    text = "base: &a {x: 1, y: 1}\nother: &b {y: 2, z: 2}\nm: {z: 0, <<: [*a, *b], w: 0}\nn:\n  <<: *a\n"
    ((document,), error) = read(text)
    assert error is None
    assert document["m"] == {"z": 0, "w": 0, "x": 1, "y": 1}
    assert document["n"] == {"x": 1, "y": 1}
    assert read("m: {<<: 5}")[0][0]["m"]["<<"].message.startswith("a merge key takes an object")
    assert read("m: {<<: {}, <<: {}}")[0][0]["m"]["<<"].message == 'duplicate field "<<"'


def test_lines_of_aliases():
    """An aliased value stands where the alias stands, its parts where they are written."""
    nodes, _ = read_documents(SourceText(name="a", content=b"a: &x\n  b: 1\nc:\n  d: *x\n"))
    aliased = nodes[0].value["c"].value["d"]
    assert (aliased.line, aliased.value["b"].line) == (4, 2)


@pytest.mark.parametrize("name", ["a.yaml", "a.json"])
def test_depth(name):
    """256 levels are read; one more is refused at once, however many follow."""
    deep = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert read(deep, name)[1] is None
    assert read("[" + deep + "]", name)[1] == (1, "nested deeper than 256 levels")
    assert read("[" * 1_000_000, name)[1] == (1, "nested deeper than 256 levels")
    assert read('{"a":' * 1_000_000, name)[1] == (1, "nested deeper than 256 levels")


def test_depth_through_aliases():
    """Depth counts aliases followed: a chain of them is no way around it."""
    text = "\n".join(["- &a0 []"] + [f"- &a{i} [[[[[[[[[[*a{i - 1}]]]]]]]]]]" for i in range(1, 30)])
    assert read(text)[1] == (27, "nested deeper than 256 levels, aliases followed")


def test_size_of_all_documents():
    """The limit is a text's, however many documents it is made of."""
    document = f"--- [&a {'x' * 100_000}, {', '.join(['*a'] * 100)}]\n"
    assert read(document)[1] is None
    documents, error = read(document * 10)
    assert len(documents) == 3
    assert error[0] == 4


@pytest.mark.parametrize("leaf", ["x", "x" * 10_000])
def test_billion_laughs(leaf):
    """Size counts aliases followed, by elements and by characters."""
    text = f"- &a0 {leaf}\n" + "\n".join(f"- &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 20))
    line, message = read(text)[1]
    assert line < 10
    assert message.startswith(f"the text is too large: more than {MAX_COST} bytes, aliases followed")


def test_without_libyaml(monkeypatch):
    """Where PyYAML has no libyaml, its own parser reads the same: values, lines, depth, and what stops it."""
    text = "a: &x [1, on, 0x10, ~, 2020-01-01]\nb:\n  <<: {c: *x}\n  d: !mine e\n---\n" + "[" * 1000
    fast = read_documents(SourceText(name="a", content=text.encode()))
    monkeypatch.setattr(yaml_text, "_LOADER", yaml.SafeLoader)
    slow = read_documents(SourceText(name="a", content=text.encode()))
    assert slow[0] == fast[0]
    assert (slow[1].line, str(slow[1])) == (fast[1].line, str(fast[1]))
    assert read("a: \x01")[1] == (1, "unacceptable character: special characters are not allowed")
