"""Units cover any text, also invalid code, and hostile text takes linear time."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.systems.code_memory.languages.javascript import read_any_typescript
from tests.unit.systems.code_memory.languages.readers import READERS, assert_covers
from tests.unit.systems.code_memory.languages.samples import SAMPLES

LANGUAGES = sorted(READERS)
PIECES = st.sampled_from(
    [piece for text in SAMPLES.values() for piece in text.splitlines(keepends=True)]
    + [
        "\r\n",
        "\n\n",
        "é😀",
        "{",
        "}",
        "(",
        "'",
        '"',
        "`",
        "/*",
        "*/",
        "<script>",
        "</script>",
        ";",
    ]
)


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
@settings(max_examples=60, deadline=None)
@given(text=st.lists(PIECES, max_size=25).map("".join))
def test_units_cover_damaged_code(language: str, text: str) -> None:
    assert_covers(text, READERS[language](text))


@pytest.mark.parametrize("language", sorted(SAMPLES))
def test_units_cover_samples_with_either_line_end(language: str) -> None:
    text = SAMPLES[language]
    for written in (text, text.replace("\n", "\r\n"), "😀é\n" + text):
        assert_covers(written, READERS[language](written))


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("hostile", ["brackets", "braces", "line", "quotes", "chain"])
def test_hostile_text_is_read(language: str, hostile: str) -> None:
    text = {
        "brackets": "(" * 100_000,
        "braces": "{" * 50_000 + "}" * 50_000,
        "line": "x" * 10_000_000,
        "quotes": "'" + "\\'" * 100_000,
        "chain": "a" + ".b()" * 20_000,
    }[hostile]
    start = time.process_time()
    assert_covers(text, READERS[language](text))
    assert time.process_time() - start < 30


def test_text_that_is_of_no_language_is_cut_at_blank_lines_and_says_so() -> None:
    text = "]]] }}} %% ))\n\n(((( ]]] @@ ##\n"
    code = READERS["java"](text)
    assert [unit.role for unit in code.units] == ["rest", "rest"]
    assert "cut at blank lines" in code.notes[0]
    assert "@@" not in code.notes[0]


def test_what_is_whole_stays_a_unit_beside_an_error() -> None:
    code = READERS["go"]("package p\n\nfunc A() {}\n\nfunc B( {\n\nfunc C() {}\n" + "// x\n" * 40)
    assert "p.A" in {unit.symbol for unit in code.units}
    assert code.notes


def test_elements_with_an_error_among_them_are_read_as_elements() -> None:
    text = "import a from 'b';\nexport default () => <p title={<b>c</b>}>files & folders</p>;\n"
    code = read_any_typescript(text)
    assert [fact.values["name"] for fact in code.facts if fact.kind == "exports"] == ["default"]
    assert code.notes


def test_a_large_type_is_its_head_and_its_members() -> None:
    body = "".join(f"  m{n}() {{ return '{'x' * 300}' }}\n" for n in range(30))
    text = f"/** doc */\nexport class Big {{\n  field = 1\n{body}}}\n"
    units = READERS["typescript"](text).units
    assert [unit.symbol for unit in units] == ["Big", *(f"Big.m{n}" for n in range(30))]
    assert text[units[0].start : units[0].end] == "/** doc */\nexport class Big {\n  field = 1"
    assert text[units[-1].start : units[-1].end].endswith("}\n}")
    small = READERS["typescript"]("export class Small { a() {} b() {} }").units
    assert [unit.symbol for unit in small] == ["Small"]
