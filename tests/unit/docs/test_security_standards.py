"""The tables for auditors: each requirement has one row, and each row has tests or a reason."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "security-standards.md"
LLM_ITEMS = {"LLM01", "LLM02", "LLM04", "LLM08"}
SECTIONS = {
    1: (2, 9, 11, 3, 2),
    2: (3, 3, 4, 1),
    3: (0, 2, 4, 6, 5, 0, 2),
    4: (3, 1, 2, 4),
    5: (1, 3, 2, 3),
    6: (3, 12, 4, 4, 5, 3, 0, 4),
    7: (3, 4, 2, 5, 2, 2),
    8: (2, 3, 1, 1),
    9: (3, 4),
    10: (2, 2, 4, 11, 5, 2, 3),
    11: (2, 3, 3, 4, 1, 1, 0),
    12: (3, 2, 4),
    13: (1, 5, 2, 5),
    14: (2, 4, 3),
    15: (3, 3, 7, 0),
    16: (1, 5, 4, 3, 3),
    17: (1, 4, 2),
}
"""The number of requirements of levels 1 and 2 in each section, by chapter of ASVS 5.0.0.

In every section they are numbered from 1, before those of level 3.
"""
REQUIREMENTS = {
    f"V{chapter}.{section}": count
    for chapter, counts in SECTIONS.items()
    for section, count in enumerate(counts, 1)
}
WITHOUT_A_TEST = {"not met", "not applicable"}
NOT_APPLICABLE_SECTIONS = {"V17.1", "V17.2", "V17.3"}


def rows() -> list[list[str]]:
    """Return the cells of every row of the page's tables."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [row for row in cells if row[0] not in {"item", "requirements"}]


def requirements(cell: str) -> Iterator[str]:
    """Yield the requirements in a first cell, as in `V1.2: 1, 4–6`."""
    section, _, numbers = cell.partition(": ")
    for part in filter(None, numbers.split(", ")):
        first, _, last = part.partition("–")
        yield from (f"{section}.{n}" for n in range(int(first), int(last or first) + 1))


def of_asvs() -> list[list[str]]:
    return [row for row in rows() if row[0].startswith("V")]


def test_every_row_has_tests_or_a_reason() -> None:
    for row in rows():
        assert len(row) == 3, row
        _, promise, proof = row
        assert len(promise) >= 10, row
        is_tested = re.fullmatch(r"`[a-z0-9_/]*test_\w+\.py`(, `[a-z0-9_/]*test_\w+\.py`)*", proof)
        assert is_tested or proof in WITHOUT_A_TEST, row


def test_every_requirement_of_level_2_is_in_one_row() -> None:
    counted = Counter(name for row in of_asvs() for name in requirements(row[0]))
    expected = {f"{s}.{n}" for s, count in REQUIREMENTS.items() for n in range(1, count + 1)}
    assert expected - counted.keys() == set()
    assert counted.keys() - expected == set()
    assert [name for name, count in counted.items() if count > 1] == []
    assert len(expected) == 253


def test_every_section_is_there_also_those_of_level_3_alone() -> None:
    sections = {row[0].partition(": ")[0] for row in of_asvs()}
    assert sections == REQUIREMENTS.keys()
    empty = {section for section, count in REQUIREMENTS.items() if not count}
    assert {row[0] for row in of_asvs() if row[1] == "level 3 only"} == empty


def test_every_item_for_llm_applications_has_a_tested_promise() -> None:
    items = [row for row in rows() if not row[0].startswith("V")]
    assert {row[0].split()[0] for row in items} == LLM_ITEMS
    tested = {row[0].split()[0] for row in items if row[2] not in WITHOUT_A_TEST}
    assert tested == LLM_ITEMS


def test_sections_that_cannot_apply_claim_no_test() -> None:
    claims = {row[2] for row in of_asvs() if row[0].partition(": ")[0] in NOT_APPLICABLE_SECTIONS}
    assert claims == {"not applicable"}
