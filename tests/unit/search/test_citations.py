import re
import time
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.search.citations import CitationVerdict, enforce_citations, verify_citations
from rag_assets.search.names import NamedWords, find_missing_names
from tests.cost import assert_linear


@dataclass(frozen=True)
class Passage:
    number: int
    text: str
    title: str | None = None
    heading_path: tuple[str, ...] = ()


HITS = [
    Passage(1, "The valve opens at 4 bar and closes at 3 bar.", "Valves"),
    Passage(2, "Pumps are greased every second Monday.", heading_path=("Upkeep",)),
]


def verdicts(answer: str) -> list[CitationVerdict]:
    return [sentence.verdict for sentence in verify_citations(answer, HITS)]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The valve opens at 4 bar [1].", ["supported"]),
        ("The valve opens at 4 bar. [1]", ["supported"]),
        ("The valve opens at 4 bar.[1] Pumps are greased [2].", ["supported", "supported"]),
        ("The valve opens at 4 bar.", ["uncited"]),
        ("The valve opens at 4 bar [3].", ["unknown"]),
        ("The valve opens at 4 bar [1, 3].", ["supported"]),
        ("The valve opens at 4 bar [2].", ["unsupported"]),
        ("Valves and pumps need upkeep [1][2].", ["supported"]),
        ("## How often?\n\nPumps: every second Monday [2].", ["no claim", "no claim", "supported"]),
        ("This is what we know:\n- greased every Monday [2]\n- it is red", None),
        ("Shall I look further?", ["no claim"]),
        ("", []),
    ],
)
def test_each_sentence_has_its_verdict(answer: str, expected: list[CitationVerdict] | None) -> None:
    if expected is None:
        expected = ["no claim", "supported", "uncited"]
    assert verdicts(answer) == expected


def test_what_does_not_exist_is_cited_with_its_number() -> None:
    known, unknown = verify_citations("The valve opens at 4 bar [1, 7]. It is red [9].", HITS)
    assert (known.cites, known.verdict) == ((1, 7), "supported")
    assert (unknown.cites, unknown.verdict) == ((9,), "unknown")


def test_claims_without_support_go_and_the_rest_stays_as_written() -> None:
    answer = (
        "## Valves\n\nThe valve opens at 4 bar [1, 8].  It was made in Bern. "
        "Pumps are greased every second Monday [2]. It is red [9]."
    )
    assert enforce_citations(answer, HITS) == (
        "## Valves\n\nThe valve opens at 4 bar [1].  Pumps are greased every second Monday [2]."
    )


def test_an_answer_without_any_support_comes_back_empty() -> None:
    assert enforce_citations("## Valves\n\nIt was made in Bern.", HITS) == ""
    assert enforce_citations("The valve opens at 4 bar [1].", []) == ""


@pytest.mark.parametrize(
    "piece",
    [
        "# Your session expired, log in at https://evil.example/login",
        "# Valve: //evil.example/login", "Send your valve password to https://evil.example/steal?",
        "![valve](https://evil.example/p.png?q=secret):",
        "Does the valve open for eve@evil.example?", "See the valve at evil.example/login:",
        "Shall the [valve](login) open?", "<img src=valve>:", "[valve]: /login?",
        "What is your password?", "The valve opens at 4 bar, see https://evil.example/login [1].",
        "The valve opens at 4 bar [1](https://evil.example/login).",
        "[The valve opens at 4 bar](javascript:alert) [1].",
        "The valve opens at evil.example [1].", "The valve opens at https:/evil.example [1].",
        "https://evil.example [1]", "See https://evil.example/a?b=valve [2].",
        "See https://evil.example/a?valve=opens!pumps=greased.Monday [2].",
        "![valve](https://evil.example/a?b=pumps&c=greased [2])",
        "See [the valve](https://evil.example/a!b=pumps [2]) [1].",
        "<img src='https://evil.example/a?b=pumps [2]'>",
        "https://evil.example/a\u3002b=pumps [2]", "Ask evil.example/a?b=pumps [2]",
    ],
)  # fmt: skip
def test_addresses_that_no_passage_names_go_whatever_they_stand_in(piece: str) -> None:
    answer = f"The valve opens at 4 bar [1].\n{piece}\nPumps are greased [2]."
    assert (
        enforce_citations(answer, HITS) == "The valve opens at 4 bar [1].\nPumps are greased [2]."
    )


@pytest.mark.parametrize(
    "answer",
    [
        "Set the bar in valves.toml [1].",
        "Set it in `valves.toml`:\n- The valve opens at 4 bar [1]",
        "Ask valves@acme.example, or see https://acme.example/valves. [1]",
        "See [the page of valves](https://ACME.example/valves/) at acme.example [1].",
        "Valve v1.2 opens at 4.5 bar, e.g. on Mondays and/or Tuesdays [1]: it is a valve [1].",
        "### Valves\n\nWhich valve?\n\n---\n\nThe valve opens at 4 bar [1].",
    ],
)
def test_addresses_that_the_passage_names_stay(answer: str) -> None:
    text = (
        "The valve opens at 4 bar, v1.2 at 4.5, on Monday and Tuesday. Its bar is set in"
        " valves.toml; see the page of valves,"
        " https://acme.example/valves, or ask valves@acme.example."
    )
    assert enforce_citations(answer, [Passage(1, text, "Valves")]) == answer


@pytest.mark.parametrize("unit", ["a.", "/", "a@", "[](", "<a ", "a", "://", "a-", "mailto:"])
def test_addresses_are_found_in_time(unit: str) -> None:
    """50,000 characters that start like an address take linear time."""
    answer = f"{unit * (50_000 // len(unit))} [1]"
    started = time.process_time()
    verify_citations(answer, HITS)
    assert time.process_time() - started < 1


sentences = st.sampled_from(
    [
        *("The valve opens at 4 bar [1]. ", "It was made in Bern. "),
        *("Pumps are greased [2, 11]. ", "Nothing of it is true [99].\n", "# Heading\n"),
        *("- an item\n", "```\ncode [1]\n```\n", "What now? ", "\ud800 [1]"),
    ]
)


answers = st.lists(sentences, max_size=8).map("".join)
wild = st.text(alphabet="ab [1,2]9.\n#`", max_size=60)


@pytest.mark.slow
@given(answers | wild)
def test_sentences_cover_the_answer_and_what_is_enforced_is_in_order(answer: str) -> None:
    checked = verify_citations(answer, HITS)
    assert "".join(answer[s.start : s.end] for s in checked) == answer
    enforced = enforce_citations(answer, HITS)
    again = verify_citations(enforced, HITS)
    assert {n for s in again for n in s.cites} <= {1, 2}
    assert {s.verdict for s in again} <= {"supported", "no claim"}
    assert all(int(n) <= 2 for n in re.findall(r"\[(\d{1,4})\]", enforced))
    assert enforce_citations(enforced, HITS) == enforced


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("[1] The valve opens.", "[1] The valve opens."),
        ("No [1]. The valve opens [1].", "The valve opens [1]."),
        ("[1]", ""),
        ("The valve, as e.g. shown, opens [1].", "The valve, as e.g. shown, opens [1]."),
        ("The valve opens [1–2; 7].", "The valve opens [1, 2]."),
        ("The valve【1†source】 opens [^1].", "The valve[1] opens [1]."),
        ("The valve opens [1-500].", ""),
        ("1. The valve opens [1].\n2. It is red.\n", "1. The valve opens [1]."),
        ("- It is red. The valve opens [1].", "- The valve opens [1]."),
        ("The valve opens:\n- ```\n  valve: open\n  ```\n  [1]", None),
        ("| A | B |\n|---|---|\n| valve | 4 [1] |\n| red | 3 |",
         "| A | B |\n|---|---|\n| valve | 4 [1] |"),
        ("| A | B |\n|---|---|\n| red | 3 |\n\nThe valve opens [1].", "The valve opens [1]."),
    ],
)  # fmt: skip
def test_ways_of_writing_are_read_as_a_reader_does(written: str, kept: str | None) -> None:
    assert enforce_citations(written, HITS) == (written if kept is None else kept)


@pytest.mark.slow
@given(answers | wild)
def test_nothing_is_added_to_an_answer(answer: str) -> None:
    left = iter(re.sub(r"[\[\]\d,\s]", "", answer))
    assert all(char in left for char in re.sub(r"[\[\]\d,\s]", "", enforce_citations(answer, HITS)))


@pytest.mark.parametrize("unit", [" ", "Dr. ", "[1,1,", "`", "-|", "\u0301"])
def test_the_time_it_takes_grows_with_the_length_alone(unit: str) -> None:
    started = time.process_time()
    verify_citations("The valve opens [1]. " + unit * (20_000 // len(unit)), HITS)
    # Where each character looks at all that follow, it takes half a minute.
    assert time.process_time() - started < 3


WRONG = "The valve opens at 45 bar [1]. Pumps are greased every second Monday [2]."


def test_a_claim_with_a_figure_that_its_passage_lacks_is_removed() -> None:
    [wrong, right] = verify_citations(WRONG, HITS)
    assert (wrong.verdict, wrong.missing) == ("unsupported", ("45",))
    assert (right.verdict, right.missing) == ("supported", ())
    assert enforce_citations(WRONG, HITS) == "Pumps are greased every second Monday [2]."


def test_such_a_claim_is_marked_where_that_is_asked_for() -> None:
    kept = enforce_citations(WRONG, HITS, mark=True)
    said = "The valve opens at 45 bar [unsupported]. Pumps are greased every second Monday [2]."
    assert kept == said
    # What is wrong in another way goes all the same, and a mark of the model's keeps nothing.
    other = "It was made in Bern [unsupported]. Ask +49 30 1234567 about the valve [1]. "
    assert enforce_citations(other + WRONG, HITS, mark=True) == kept
    assert enforce_citations("The valve opens at 45 bar [1].", HITS, mark=True) == (
        "The valve opens at 45 bar [unsupported]."
    )


def test_a_figure_of_another_passage_than_the_cited_one_is_missing() -> None:
    hits = [*HITS, Passage(3, "The old valve opens at 45 bar.")]
    assert enforce_citations("The valve opens at 45 bar [1].", hits) == ""
    assert enforce_citations("The valve opens at 45 bar [1, 3].", hits)


def test_names_are_looked_up_in_time_that_grows_as_the_claim_does() -> None:
    text = " ".join(f"Der Satz und die Stadt{n}er und der Fluss{n}el ist so." for n in range(200))
    passage = NamedWords(text)
    passage.has(next(iter(passage.words)))

    def look_up(count: int) -> None:
        names = " ".join(f"und die Q{chr(97 + n % 26)}z{n} und der" for n in range(count))
        claim = f"Es ist so, dass die Antwort das Wort ist {names} Satz ist."
        assert len([*find_missing_names(claim, passage, passage)]) == count

    assert_linear(look_up, 200)


def test_passages_are_parsed_once_however_claims_combine_them() -> None:
    parts = [NamedWords(f"The {name} gate is open.") for name in ("North", "South", "East")]
    whole = NamedWords.merge(parts)
    assert [*whole.words] == [word for part in parts for word in part.words]
    assert all(
        a is b for a, b in zip(whole.words, (w for p in parts for w in p.words), strict=True)
    )
    assert [*find_missing_names("It is the West gate.", whole, whole)] == ["West"]
    assert [*find_missing_names("It is the South gate.", whole, whole)] == []
