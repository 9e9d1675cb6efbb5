"""Keys of settings equal those that the format's own parser finds, also in damaged files."""

from __future__ import annotations

import json
import tomllib
import tracemalloc
from collections.abc import Callable
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from rag_assets.systems.code_memory.settings import reader
from rag_assets.systems.code_memory.settings.entries import read_json_entries, read_yaml_entries
from rag_assets.systems.code_memory.symbols.model import CodeText
from tests.unit.systems.code_memory.languages.readers import assert_covers

READERS: dict[str, Callable[[str], CodeText]] = {
    "json": reader.read_json,
    "yaml": reader.read_yaml,
    "toml": reader.read_toml,
    "ini": reader.read_ini,
}

TEXTS = {
    "json": '{"a": {"b": "x", "c": [1, {"d": "2"}]}, // why\n "e": true}\n',
    "yaml": "# first\na: &x\n  b: |\n    c: 1\n\n  d: 'it''s'\nl:\n- e: 1\n  f: {g: [2]}\n*x : 3\n",
    "toml": '# first\na = 1\n[b."c d"]\ne = """x\n[no]\n"""\nf = [\n  "g", # no\n]\n'
    "[[h]]\ni = {j = 1}\n",
    "ini": "# first\n[a]\nb = 1\nc =\n  d\n  e\n[f g]\nh: 2\n",
}


def keys(text: str, language: str) -> set[str]:
    found = READERS[language](text).facts
    return {str(fact.values["name"]) for fact in found if fact.kind == "defines_setting"}


def flattened(value: object) -> set[str]:
    todo: list[tuple[str, object]] = [("", value)]
    found = set()
    while todo:
        name, one = todo.pop()
        if isinstance(one, dict):
            todo += [(f"{name}.{key}" if name else str(key), inner) for key, inner in one.items()]
        elif not isinstance(one, list):
            found.add(name)
    return found


NAMES = st.text("abcxyz_", min_size=1, max_size=4)
VALUES = st.recursive(
    st.one_of(st.text("ab :#'\"\\,é", max_size=5), st.integers(0, 99), st.booleans()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=12,
)
TABLES = st.dictionaries(NAMES, VALUES, min_size=1, max_size=4)


@settings(max_examples=100, deadline=None)
@given(TABLES, st.sampled_from([None, 2]))
def test_keys_of_json_are_those_of_its_parser(table: dict[str, object], indent: int | None) -> None:
    text = json.dumps(table, indent=indent)
    reading = reader.read_json(text)
    assert [unit.symbol for unit in reading.units] == list(json.loads(text))
    assert keys(text, "json") == flattened(table)
    assert keys(text, "yaml") >= flattened(table) or indent is None
    assert not reading.notes


def test_keys_of_yaml_are_those_of_its_parser() -> None:
    text = (
        "name: x # why\non:\n  push: {branches: [main]}\njobs:\n  build:\n    steps:\n"
        "    - run: |\n"
        "        a: b\n      if: true\n    - uses: 'c'\n    env:\n"
        '      KEY: "a: b"\n      url: http://x:1\n'
        'folded: >-\n  key: no\n\n  more\n"quoted key": 1\nlong: a\n  b\nend: !!str 3\n'
    )
    table = YAML(typ="safe", pure=True).load(text)
    reading = reader.read_yaml(text)
    assert [unit.symbol for unit in reading.units] == [str(key) for key in table]
    assert flattened(table) - keys(text, "yaml") == {"folded"}  # a block has no scalar of one line
    assert keys(text, "yaml") <= flattened(table)


def test_keys_of_toml_are_those_of_its_parser() -> None:
    text = (
        'a = 1\n"b c" = "x = 1"\n[d.e]\nf = """\n[no]\n"""\ng = [\n "1", # ]\n "2",\n]\n'
        "h = 1979-05-27T07:32:00Z\n"
        "[i]\nj = {k = 1, l.m = 'n'}\n"
    )
    reading = reader.read_toml(text)
    assert [unit.symbol for unit in reading.units] == ["a", "b c", "d.e", "i"]
    assert flattened(tomllib.loads(text)) - keys(text, "toml") <= {"i.j.l.m"}


@pytest.mark.parametrize(
    ("value", "inner"),
    [
        ("[http://a, http://b]", set()),
        ("{url: https://x}", {"first.url"}),
        ("[a#b]", set()),
        ("[it's, b]", set()),
        ('{{ include "x" . }}-{{ tag }}', {"first"}),
        ('"a \\u00e9\\n"', {"first"}),
        ('["a", b: c, {d: e}]', set()),
        ("!!str &x y", {"first"}),
    ],
)
def test_values_of_yaml_end_where_they_end(value: str, inner: set[str]) -> None:
    text = f"first: {value} # why\nsecond:\n  third: 1\n"
    reading = reader.read_yaml(text)
    assert keys(text, "yaml") == {*inner, "second.third"}
    assert [unit.symbol for unit in reading.units] == ["first", "second"]
    assert not reading.notes


def test_damaged_yaml_is_read_on_where_a_line_is_not_indented() -> None:
    for damage in ('a: "b', "a: [b", "a:\n\tb: 1", "a: b: c", "a: 'b\n  c", "- }"):
        text = f"before: 1\n{damage}\nafter:\n  inner: 2\nlast: 3\n"
        assert {"before", "after.inner", "last"} <= keys(text, "yaml"), damage
        assert reader.read_yaml(text).notes == (reader.BROKEN,)


@pytest.mark.parametrize(
    ("damage", "is_setting"),
    [
        ("command: echo a: b", True),
        ("command: %x", True),
        ("command: @x", True),
        ("command: `x`", True),
        ("command: 'x", True),
        ("command: [x", False),
        ("\tcommand: x", False),
        (" command: x", False),
        ("- command", False),
    ],
)
def test_yaml_beside_a_damaged_line_is_read(damage: str, *, is_setting: bool) -> None:
    text = (
        f"services:\n  web:\n    image: w\n    {damage}\n    ports: p\n"
        "  db:\n    image: d\n  cache:\n    image: c\nvolumes:\n  data: v\n"
    ).replace("    \t", "\t")
    beside = {"web.image", "web.ports", "db.image", "cache.image"}
    expected = {f"services.{name}" for name in beside} | {"volumes.data"}
    assert keys(text, "yaml") == expected | ({"services.web.command"} if is_setting else set())
    assert reader.read_yaml(text).notes == (reader.BROKEN,)


def test_yaml_with_conflict_markers_has_the_keys_of_both_sides() -> None:
    text = "a:\n  b: 1\n<<<<<<< HEAD\n  c: 2\n=======\n  d: 3\n>>>>>>> other\n  e: 4\nf: 5\n"
    assert keys(text, "yaml") == {"a.b", "a.c", "a.d", "a.e", "f"}


def test_reading_of_yaml_goes_on_at_any_key_that_is_not_indented() -> None:
    text = "a: 1\n- b\n.base: 2\n}\n$ref: 3\n? [\n/path: 4\n"
    assert keys(text, "yaml") == {"a", ".base", "$ref", "/path"}


def test_an_item_of_yaml_begins_at_its_dash_and_not_in_a_comment() -> None:
    text = "l:\n  - # a - b\n    # c - d\n    x: 1\n  - - # e - f\n      y\n  -\n  - z # g\n"
    items = [one for one in read_yaml_entries(text)[0] if one.path[-1] == "[]"]
    assert [text[item.start : item.end] for item in items] == [
        *(
            "- # a - b\n    # c - d\n    x: 1",
            "- - # e - f\n      y",
            "- # e - f\n      y",
            "-",
            "- z",
        )
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1, "b": [1, 2,], "c": {"d": 2, /* , ] */ },}', ["1", "1", "2", "2"]),
        ('{"a": NaN, "b": -Infinity, "c": "NaN, ]"}', ["NaN", "-Infinity", "NaN, ]"]),
        ('{"a": {{ x }}, {{ y }}: 2, "c": "{{ \'z }},]"}', ["{{ x }}", "2", "{{ 'z }},]"]),
        ('{\n{% if x %}\n"a": 1,\n{{- end }}\n"b": {# no #} 2\n}', ["1", "2"]),
        ("{a: 1, 'b': 'it\\'s', \"\": 3, long_name : 4}", ["1", "it\\'s", "3", "4"]),
    ],
)
def test_json_with_extensions_is_read_whole(text: str, expected: list[str]) -> None:
    entries, whole = read_json_entries(text)
    assert [entry.value for entry in entries if entry.value is not None] == expected
    assert whole
    named = [entry for entry in entries if "[]" not in entry.path]
    assert all(entry.path[-1] in text[entry.start : entry.end] for entry in named)


def test_a_damaged_value_of_json_is_not_that_of_the_next_key() -> None:
    entries, whole = read_json_entries('{"a": @@, "b": 2, "c": , "d": 3}')
    assert {entry.path[0]: entry.value for entry in entries}["a"] is None
    assert not whole
    assert [(e.path, e.value) for e in read_json_entries('{"c": , "d": 3}')[0]] == [
        (("c",), None),
        (("d",), "3"),
    ]


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("json", '{"%s": {%s}}'),
        ("json", '{"openapi": "3", "paths": {"/%s": {%s}}}'),
        ("json", '{"openapi": "3", "servers": [{"url": "/%s"}], "paths": {"/": {%s}}}'),
        ("json", '{"autoload": {"psr-4": {"\\\\\\\\%s": [%s]}}}'),
        ("yaml", '? "%s"\n: {%s}\n'),
        ("toml", '["%s"]\na = {%s}\n'),
    ],
)
def test_a_long_key_is_not_copied_for_each_key_below_it(language: str, text: str) -> None:
    below = ", ".join(f'"a{n}": 1' if language != "toml" else f"a{n} = 1" for n in range(300))
    below = ", ".join(['"get": {}'] * 300) if "openapi" in text else below
    below = ", ".join(['"x"'] * 300) if "psr-4" in text else below
    written = text % ("k" * 100_000, below)
    READERS[language](TEXTS[language])  # imports
    tracemalloc.start()
    try:
        reading = READERS[language](written)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert_covers(written, reading)
    assert peak < 5_000_000, f"{peak:,} bytes"


def test_templates_of_yaml_are_skipped() -> None:
    text = (
        "{{- if .Values.on }}\nkind: A\nmeta:\n  {{- with .x }}\n"
        "  name: {{ .Name }}-{{ .Tag | quote }}\n  {{- end }}\n  after: {{ y }}\n"
        "{% for a in b %}\nlast: 1\n{% endfor %}\n{{- end }}\n"
    )
    assert keys(text, "yaml") == {"kind", "meta.name", "meta.after", "last"}
    assert not reader.read_yaml(text).notes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{a: 1, 'b': 2, \"c\": {dd : 3}}", {"a", "b", "c.dd"}),
        ('{"a": {"b": 1, "c": {"d": 2}, "e": [1, "x', {"a.b", "a.c.d"}),
    ],
    ids=["without quotes", "never closed"],
)
def test_keys_of_malformed_json_are_read(text: str, expected: set[str]) -> None:
    assert keys(text, "json") == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    ["? " * 50_000, "".join(" " * n + "a:\n" for n in range(1_000)), "- " * 50_000 + "a"],
    ids=["keys", "tables", "lists"],
)
def test_deeply_nested_yaml_is_read_to_a_bounded_depth(text: str) -> None:
    reading = reader.read_yaml(text)
    assert_covers(text, reading)
    assert reading.notes == (reader.BROKEN,)


@pytest.mark.parametrize("language", sorted(TEXTS))
def test_units_are_whole_keys_with_their_comments(language: str) -> None:
    text = TEXTS[language]
    for written in (text, text.replace("\n", "\r\n"), "# é😀\n" + text):
        reading = READERS[language](written)
        assert_covers(written, reading)
        assert {unit.role for unit in reading.units if unit.symbol} == {"key"}
    assert READERS[language](text).units[0].start == 0


@pytest.mark.slow
@pytest.mark.parametrize("language", sorted(TEXTS))
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_units_cover_any_text(language: str, data: st.DataObject) -> None:
    pieces = [*TEXTS.values(), *"".join(TEXTS.values())]
    pieces += ["\r\n", "'", '"""', "/*", "- ", "x: ", "\f"]
    text = "".join(data.draw(st.lists(st.sampled_from(pieces), max_size=30)))
    assert_covers(text, READERS[language](text))


HOSTILE = {
    "brackets": "[" * 100_000,
    "keys": '{"a":' * 100_000,
    "yaml": "a: " + "[" * 100_000,
    "dashes": "- " * 100_000,
    "quotes": 'a: "' + '\\"' * 500_000,
    "line": "x" * 1_000_000,
    "colons": "a:" * 500_000,
    "triples": 'a = """' + '\\"""' * 200_000,
    "comments": "/*" * 300_000,
    "lines": "a: '\n" * 20_000,
    "blank": " " * 1_000_000 + "\n" * 100_000,
    "flows": "a: [\n" * 20_000,
    "aliases": "a: &a [x]\n" + "b: [*a, *a, *a]\n" * 20_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("language", sorted(TEXTS))
@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_texts_are_read_in_time(language: str, name: str) -> None:
    began = process_time()
    assert_covers(HOSTILE[name], READERS[language](HOSTILE[name]))
    assert process_time() - began < 8
