"""The dashboard's modules that compute: each function by itself, in the browser."""

import pytest

LAST = "2026-11-26T11:17:15Z"


@pytest.fixture(scope="module")
def evaluate(chromium, gateway):
    """The value of an expression about the exports of a module: ``evaluate("numbers", "m.quantile(...)")``."""
    page = chromium.new_page()
    page.goto(gateway.dashboard)

    def run(module, expression):
        return page.evaluate(f"import('/ui/{module}.js').then((m) => {expression})")

    yield run
    page.close()


@pytest.mark.parametrize(
    ("module", "expression", "expected"),
    [
        ("numbers", "m.quantile(0.5, [1, 2, 4], [0, 0, 0, 0])", None),
        ("numbers", "m.quantile(0.5, [1, 2, 4], [0, 10, 0, 0])", 1.5),
        ("numbers", "m.quantile(0.99, [1, 2, 4], [0, 0, 0, 5])", 4),
        ("numbers", "m.quantile(0, [1, 2, 4], [0, 3, 0, 0])", 1),
        ("numbers", "m.difference({a: 5, b: [1, 2]}, {a: 3, b: [1, 1]})", {"a": 2, "b": [0, 1]}),
        ("numbers", "m.difference({a: 5}, {a: 7})", {"a": 5}),
        ("numbers", "m.difference({a: 5}, undefined)", {"a": 5}),
        ("numbers", "[0.00085, 0.0123, 1.25, 0, null].map(m.duration)", ["850 µs", "12.3 ms", "1.25 s", "0 µs", "–"]),
        ("numbers", "[m.share(1, 3), m.share(0, 0)]", ["33 %", "–"]),
        ("numbers", "[m.daysUntil(86400 * 3, 0), m.daysUntil(0, 1)]", [3, -1]),
        ("numbers", "[m.counted(1, 'policy', 'policies'), m.counted(2000, 'x')]", ["1 policy", "2,000 xs"]),
        ("live", "m.parse('event: a\\ndata: {\"b\":1}\\n\\nevent: c\\nda')", [[["a", {"b": 1}]], "event: c\nda"]),
        ("numbers", "m.clock(86399.5)", "23:59:59.500"),
        ("numbers", "m.utc('2026-11-26T11:17:15.250Z')", "2026-11-26 11:17:15.250 UTC"),
        ("charts", "m.timeRange([], 1000)", [940, 1000]),
        ("charts", "[[1000], [995, 1000], [900, 1000]].map((times) => m.timeRange(times)[0])", [940, 940, 900]),
        ("live", "m.parse('')", [[], ""]),
        (
            "object",
            "['a', 'yes', '1', '', 'a: b', 'a b', '<'].map(m.scalar)",
            ["a", '"yes"', '"1"', '""', '"a: b"', "a b", '"<"'],
        ),
        ("object", "m.valueOf({beforeDigest: 'd'}, 'before')", "(hidden, digest d)"),
        ("object", "m.valueOf({after: {a: 1}}, 'after')", '{"a":1}'),
        ("object", "m.lines({a: 1}, []).lines.map((line) => line.text)", ["a: 1"]),
    ],
)
def test_values(evaluate, module, expression, expected):
    """What each function returns."""
    assert evaluate(module, expression) == expected


def test_the_closest_change_colours_a_line(evaluate):
    """A field of an added element that another policy changed has the other policy's colour."""
    changes = "[{op: 'add', path: '/l/0', policy: 'p'}, {op: 'replace', path: '/l/0/b~1c', policy: 'q'}]"
    expression = f"m.lines({{l: [{{a: 1, 'b/c': 2}}], d: []}}, {changes}).lines"
    assert [
        (line["depth"], line["text"], line["policy"], line["first"]) for line in evaluate("object", expression)
    ] == [
        (0, "l:", None, False),
        (1, "-", "p", True),
        (2, "a: 1", "p", False),
        (2, "b/c: 2", "q", True),
        (0, "d: []", None, False),
    ]


def test_several_processes_are_added_up(evaluate):
    """Those of the first give the time; what another has counted is added."""
    numbers = (
        "{process: '%s', time: %d, outcomes: {allowed: %d, denied: 0, failed: 0}, buckets: [1], durations: [1, 2]}"
    )
    events = "; ".join(f"on.numbers({numbers % each})" for each in (("a", 7, 1), ("b", 8, 10), ("a", 9, 2)))
    failed_open = "failedOpen: [{{phase: 'p', policy: 'x', count: {}}}], lastFailedOpen: {}"
    state = f"{{...m.store.state, process: 'a', {failed_open.format(1, 'null')}}}"
    other = f"{{...m.store.state, process: 'b', {failed_open.format(2, repr(LAST))}}}"
    expression = f"""{{
        const on = m.receiver(); on.state({state}); on.state({other}); {events};
        return [m.store.numbers, m.store.state];
    }}"""
    records, shown = evaluate("store", expression)
    assert [
        (each["time"], each["outcomes"]["allowed"], each["durations"]) for each in records if each["time"] < 10
    ] == [
        (7, 1, [1, 2]),
        (9, 12, [2, 4]),
    ]
    assert (shown["failedOpen"], shown["process"]) == ([{"phase": "p", "policy": "x", "count": 3}], "a")
    assert shown["lastFailedOpen"] == LAST


def test_a_large_object_is_cut(evaluate):
    """A browser does not stall on a ConfigMap of a megabyte."""
    expression = "m.lines(Object.fromEntries(Array.from({length: 9000}, (_, n) => [n, n])), [])"
    shown = evaluate("object", expression)
    assert (len(shown["lines"]), shown["more"]) == (3000, True)
