import json
from collections.abc import Callable
from pathlib import Path

import pytest

from rag_assets.common.errors import ConfigurationError, WrongJudgements
from rag_assets.quality.files import read_judgements, write_beir
from rag_assets.quality.judgements import JudgedQuestion, Judgement
from rag_assets.quality.yaml_files import format_yaml

GOOD = """\
- id: leave
  kind: paraphrase
  question: How long may I stay at home?
  relevant:
    - {path: files/leave.md, quote: eight weeks with pay}
    - {path: files/pay.md, quote: paid in full, grade: 1}
- id: 7
  kind: none
  question: Who painted the ceiling?
"""
QUERIES = '{"_id": "1", "text": "first?"}\n{"_id": "2", "text": "second?"}\n'
QRELS = "query-id\tcorpus-id\tscore\n1\tdoc-a\t1\n1\tdoc-b\t0\n2\tdoc-b\t-1\n2\tdoc-a\t2\n"

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


def wrong(*paths: Path, **options: object) -> tuple[str, ...]:
    with pytest.raises(WrongJudgements) as caught:
        read_judgements(paths, **options)  # type: ignore[arg-type]
    return caught.value.lines


def test_a_list_of_questions_is_read(write: Write) -> None:
    leave, seven = read_judgements([write("a.yaml", GOOD)]).questions
    first = Judgement("files/leave.md", "eight weeks with pay", 3)
    second = Judgement("files/pay.md", "paid in full", 1)
    question = "How long may I stay at home?"
    assert leave == JudgedQuestion("leave", "paraphrase", question, (first, second))
    assert (seven.id, seven.answerable) == ("7", False)


def test_mappings_add_to_questions_of_any_file_and_to_those_that_are_known(write: Write) -> None:
    more = write("b.yaml", "leave:\n  - {path: files/c.md, quote: a note, grade: 2}\n")
    read = write("c.json", '{"7": ["0123456789"], "old": ["aaaaaaaaaa"]}')
    old = JudgedQuestion("old", "", "Old?", (Judgement("files/o.md", "it is old"),))
    found = read_judgements([more, read, write("a.yaml", GOOD)], [old]).questions
    by_id = {question.id: question for question in found}
    assert by_id.keys() == {"leave", "7", "old"}
    assert by_id["leave"].relevant[-1] == Judgement("files/c.md", "a note", 2)
    assert by_id["7"].pool == {"0123456789"}
    assert (by_id["old"].relevant, by_id["old"].pool) == (old.relevant, {"aaaaaaaaaa"})


def test_a_judgement_on_a_known_passage_replaces_its_grade(write: Write) -> None:
    old = JudgedQuestion("old", "", "Old?", (Judgement("files/o.md", "it is old"),))
    again = write("a.yaml", "old:\n  - {path: files/o.md, quote: it is old, grade: 2}\n")
    [found] = read_judgements([again], [old]).questions
    assert found.relevant == (Judgement("files/o.md", "it is old", 2),)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("- question: Who?\n", 1, "the id is missing"),
        ("- id: a\n  question: ' '\n", 1, "the question is empty"),
        ("- id: a\n  kind: none\n  question: W?\n- words\n", 4, "a question must"),
        (GOOD + "- id: leave\n  question: Again?\n  kind: none\n", 10,
         "already used in a.yaml, line 1"),
        ("- id: a\n  question: Who?\n  relevant:\n    - {quote: x}\n", 4, "the path is missing"),
        ("- id: a\n  question: Who?\n  relevant:\n    - {path: x}\n    - {path: x}\n", 5,
         "already judged in line 4"),
        ("- id: a\n  question: Who?\n  relevant: [{path: x, grade: 2.5}]\n", 3, "whole number"),
        ("- id: a\n  question: Who?\n  relevant: [{path: x, grade: true}]\n", 3, "whole number"),
        ("- id: a\n  question: Who?\n  relevant: [{path: x, grade: -1}]\n", 3, "between 0 and"),
        ("- id: a\n  question: Who?\n  relevant: [{path: x, qoute: y}]\n", 3, "'qoute'"),
        ("- id: a\n  question: Who?\n", 1, "no judgement has a grade"),
        ("- id: a\n  question: Who?\n  relevant: [{path: x, quote: y, grade: 1}]\n", 1,
         "no judgement has a grade"),
        ("- id: a\n  kind: none\n  question: W?\n  relevant: [{path: x}]\n", 1,
         "a judged passage answers"),
        ("nobody:\n  - {path: x}\n", 1, "no question has this id"),
        ("a: {path: x}\n", 1, "list of judgements"),
        ("- id: a\n  question: Who?\n  relevant:\n    - {path: x\n", 5, "not valid YAML"),
        ("- id: a\n  id: b\n", 2, "twice"),
        ('- id: a\n  question: "\\ud800 who?"\n', 1, "cannot be stored"),
        ("words\n", 1, "the file must be a list"),
        ("", 1, "the file must be a list"),
    ],
)  # fmt: skip
def test_a_wrong_line_has_a_reason(write: Write, text: str, line: int, reason: str) -> None:
    [message] = wrong(write("a.yaml", text))
    assert message.startswith(f"a.yaml, line {line}: ")
    assert reason in message


def test_all_wrong_lines_are_told_and_none_of_the_right_ones_is_taken(write: Write) -> None:
    text = GOOD + "- id: b\n- id: c\n  question: C?\n"
    more = write("b.yaml", "leave: [1]\n")
    first, second, third = wrong(write("a.yaml", text), more)
    assert first == "a.yaml, line 10: the question is missing"
    said = "b.yaml, line 1: the item must be a judgement with a path, or the hash"
    assert second.startswith(said)
    assert third.startswith("a.yaml, line 11: no judgement has a grade of 2 or more")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    latin = tmp_path / "latin.yaml"
    latin.write_bytes("- id: a\n  question: Caf\u00e9?\n".encode("latin-1"))
    message = wrong(latin, tmp_path / "missing.yaml")
    assert message[0] == "latin.yaml, line 2: the line is not UTF-8"
    assert message[1].startswith("missing.yaml, line 1: the file cannot be read")
    assert len(message) == 2


def test_what_holds_a_credential_is_refused_and_not_quoted(write: Write) -> None:
    text = GOOD.replace("eight weeks", "swordfish weeks")
    message = wrong(write("a.yaml", text), is_refused=lambda words: "swordfish" in words)
    assert message == ("a.yaml, line 5: the line contains a credential",)


def test_a_beir_folder_is_read(write: Write) -> None:
    folder = write("set/queries.jsonl", QUERIES).parent
    write("set/qrels/test.tsv", QRELS)
    first, second = read_judgements([folder]).questions
    assert first.relevant == (Judgement("doc-a", grade=1), Judgement("doc-b", grade=0))
    assert second.relevant == (Judgement("doc-b", grade=0), Judgement("doc-a", grade=2))
    assert first.answerable
    assert first.is_of_documents


def test_queries_that_the_split_does_not_judge_are_left_out(write: Write) -> None:
    folder = write("set/queries.jsonl", QUERIES).parent
    write("set/qrels/dev.tsv", "1\tdoc-a\t1\n")
    write("set/qrels/train.tsv", "2\tdoc-a\t1\n")
    [found] = read_judgements([folder], split="train").questions
    assert found.id == "2"
    with pytest.raises(ConfigurationError) as caught:
        read_judgements([folder])
    assert "dev, train" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("queries", "qrels", "message"),
    [
        (QUERIES + "words\n", QRELS, "queries.jsonl, line 3: the line is not valid JSON"),
        (QUERIES + '{"_id": "1", "text": "x"}\n', QRELS,
         "queries.jsonl, line 3: the _id is already used"),
        (QUERIES + '{"_id": "3"}\n', QRELS, "queries.jsonl, line 3: the question is missing"),
        (QUERIES, QRELS + "3\tdoc\t1\n", "test.tsv, line 6: queries.jsonl has no query"),
        (QUERIES, QRELS + "1\tdoc\n", "test.tsv, line 6: the line has 2 columns"),
        (QUERIES, QRELS + "1\tdoc\tbest\n", "test.tsv, line 6: the score must be"),
        (QUERIES, QRELS + "1\t\t1\n", "test.tsv, line 6: corpus-id is empty"),
        (QUERIES, QRELS + "1\tdoc-a\t2\n",
         "test.tsv, line 6: this passage is already judged in line 2"),
    ],
)  # fmt: skip
def test_a_wrong_line_of_beir_fails(write: Write, queries: str, qrels: str, message: str) -> None:
    folder = write("set/queries.jsonl", queries).parent
    write("set/qrels/test.tsv", qrels)
    [line] = wrong(folder)
    assert line.startswith(message)


def test_what_is_exported_is_imported_as_it_was(write: Write, tmp_path: Path) -> None:
    questions = read_judgements([write("a.yaml", GOOD)]).questions
    odd, asked = "odd: '\u20ac'", "Line one\nline \u201ctwo\u201d: #3"
    judged, pool = Judgement("1234", None, 1), frozenset({"6213936721", "00e5555555"})
    questions += (JudgedQuestion(odd, "", asked, (judged,), pool, relevant_from=1, synthetic=True),)
    exported = write("b.yaml", format_yaml(questions))
    assert read_judgements([exported]).questions == questions
    assert write_beir(tmp_path / "beir", questions) == 2
    again = {question.id: question for question in read_judgements([tmp_path / "beir"]).questions}
    leave, pay = Judgement("files/leave.md", grade=3), Judgement("files/pay.md", grade=1)
    assert again["leave"].relevant == (leave, pay)
    assert (again["leave"].kind, again["leave"].relevant_from) == ("paraphrase", 2)
    assert again[odd].synthetic


def test_a_folder_without_judgements_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text(json.dumps({}))
    with pytest.raises(ConfigurationError):
        read_judgements([tmp_path])
