"""Questions about code contain no identifiers; recall counts the locations of an answer."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest
import yaml

from benchmarks.code_questions.questions import (
    QUESTIONS,
    AnswerLocation,
    FoundPassage,
    Question,
    draw_tuned_half,
    parse_location,
    read_questions,
)
from benchmarks.code_questions.variants import VARIANTS, Variant, build_steps
from rag_assets.systems.code_memory.retrieval.question_subject import find_question_names

WRITTEN = yaml.safe_load(QUESTIONS.read_text())["questions"]
OTHERS = {"Last.fm", "FFmpeg"}
"""Names of other products, which are not identifiers of the application."""


def test_forty_of_sixty_questions_are_multi_hop() -> None:
    kinds = Counter(one["kind"] for one in WRITTEN)
    assert kinds == {"multi-hop": 40, "single-hop": 20}
    assert len({one["id"] for one in WRITTEN}) == len(WRITTEN)
    assert all(len(one["answer"]) > 1 for one in WRITTEN if one["kind"] == "multi-hop")


def test_half_of_each_kind_is_untouched() -> None:
    tuned = draw_tuned_half((one["id"], one["kind"]) for one in WRITTEN)
    assert Counter(one["kind"] for one in WRITTEN if one["id"] in tuned) == {
        "multi-hop": 20,
        "single-hop": 10,
    }
    assert tuned == draw_tuned_half((one["id"], one["kind"]) for one in reversed(WRITTEN))


@pytest.mark.parametrize("one", WRITTEN, ids=lambda one: str(one["id"]))
def test_questions_contain_no_identifiers(one: dict[str, str]) -> None:
    names = {name for name in find_question_names(one["question"]).names if not name.islower()}
    assert names <= OTHERS
    assert not set(one["question"]) & set("/\\$_`")


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda one: one.name)
def test_each_variant_keeps_all_but_its_omitted_steps(variant: Variant) -> None:
    whole, left = (next(iter(build_steps(one).profiles.values())) for one in (VARIANTS[0], variant))
    assert [one for one in whole if one not in variant.omitted_steps] == [*left]
    assert set(variant.omitted_steps) <= set(whole)
    for path in variant.patches:
        module, _, name = path.rpartition(".")
        assert hasattr(import_module(module), name)


ROUTES = "<?php\nRoute::post('bills/{bill}/pay', PayController::class);\n"
CLASS = """<?php
class Bills
{
    public function pay(): void
    {
        $this->sum();
    }

    /** Of lines. */
    private function sum(): int
    {
        return 1;
    }
}
"""


def test_method_and_route_are_found_by_their_lines(tmp_path: Path) -> None:
    (tmp_path / "Bills.php").write_text(CLASS)
    (tmp_path / "web.php").write_text(ROUTES)
    pay = parse_location(tmp_path, "Bills.php::pay")
    assert pay.lines == (4, 7)
    assert pay.is_in(FoundPassage("Bills.php", 1, 5))
    assert not pay.is_in(FoundPassage("Bills.php", 8, 13))
    assert not pay.is_in(FoundPassage("Other.php", 4, 7))
    assert pay.is_in(FoundPassage("Bills.php")), "a passage without lines counts as the whole file"
    route = parse_location(tmp_path, "web.php#bills/{bill}/pay")
    assert route.is_in(FoundPassage("web.php", 2, 2))
    assert route.is_in(FoundPassage("", symbol="route:POST /bills/{bill}/pay"))
    assert not route.is_in(FoundPassage("", symbol="route:POST /bills"))


def test_recall_is_the_share_of_locations_among_the_first_ten_passages() -> None:
    answer = ((AnswerLocation("a"), AnswerLocation(symbol="table:a")), (AnswerLocation("b"),))
    one = Question("id", "multi-hop", "?", answer, is_tuned=True)
    assert one.recall([FoundPassage("", symbol="table:a")]) == 0.5
    assert one.recall([FoundPassage("a"), FoundPassage("b")]) == 1.0
    assert one.recall([*[FoundPassage("c")] * 10, FoundPassage("a"), FoundPassage("b")]) == 0.0
    assert one.list_missed([FoundPassage("a")]) == ["b:"]


def test_read_questions_without_the_application_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_questions(tmp_path)
