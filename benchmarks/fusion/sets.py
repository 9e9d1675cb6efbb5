"""The judged sets: passages and questions, made from public files that a person has fetched.

Each function of SETS reads one kind of file below the data folder (README.md lists the files and
their licences) and returns a set. Passages and questions are sampled with fixed seeds: the same
files make the same set.
"""

from __future__ import annotations

import ast
import html
import json
import random
import re
import subprocess
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML

from benchmarks.code_questions.questions import read_questions as code_questions
from examples.judge import HANDBOOK
from examples.judged.judgements import ANNEX, judged_questions

MAX_PASSAGES: Final = 1_500
MAX_QUESTIONS: Final = 150
_PROJECT: Final = Path(__file__).resolve().parents[2]
_WORDS_PER_PASSAGE: Final = 120
_NO_TEXT: Final = "(no text)"
"""Replaces missing texts of abstracts: an embedder rejects empty texts."""
_CODES: Final = frozenset({"identifier"})
"""Kinds of the handbook's questions that are names and codes."""

Passage = tuple[str, str]
"""A title, which may be empty, and a text."""


@dataclass(frozen=True, slots=True)
class JudgedSet:
    """Passages, and questions with the grades of the passages that answer them.

    Attributes:
        kind: documentation, faq, scientific, code, multi-hop, paraphrases, names, or encyclopedia.
        language: ISO 639-1 code of its texts.
    """

    kind: str
    language: str
    passages: Sequence[Passage]
    questions: Sequence[tuple[str, Mapping[int, int]]]


def load_handbook(_: Path, *, codes: bool) -> JudgedSet:
    """Return the example company's handbook with questions for names and codes, or all others."""
    passages = [
        (title, text) for root in (HANDBOOK, ANNEX) for title, text in _read_markdown_sections(root)
    ]
    flat = [_strip_markup(text) for _, text in passages]
    questions = []
    for question in judged_questions():
        if (question.kind in _CODES) != codes:
            continue
        grades = {
            at: judgement.grade
            for judgement in question.relevant
            for at, text in enumerate(flat)
            if judgement.quote and _strip_markup(judgement.quote) in text
        }
        questions.append((question.question, grades))
    return JudgedSet(
        "names" if codes else "documentation", "en", passages, _drop_unanswered(questions)
    )


def load_workspace(_: Path) -> JudgedSet:
    """Return the example workspace; its questions use other words than its texts."""
    folder = _PROJECT / "examples" / "workspace"
    passages: list[Passage] = []
    records: list[str] = []
    for record in _read_lines(folder / "records.ndjson"):
        text = " ".join(block.get("text", "") for block in record.get("blocks", ()))
        values = record.get("values", ())
        text = text or "; ".join(
            f"{value['name']}: {value.get('value_text', '')}" for value in values
        )
        for part in _split_words(text):
            passages.append((record.get("title", ""), part))
            records.append(record["id"])
    questions = []
    for line in _read_lines(folder / "questions.ndjson"):
        grades = {
            at: 1
            for at, (_, text) in enumerate(passages)
            if records[at] == line["record"] and line["answer"] in text
        }
        questions.append((line["question"], grades))
    return JudgedSet("paraphrases", "en", passages, _drop_unanswered(questions))


def load_python_faq(data: Path) -> JudgedSet:
    """Return questions of Python's FAQ; passages are its answers, the tutorial and the how-tos."""
    passages: list[Passage] = []
    questions: list[tuple[str, Mapping[int, int]]] = []
    for path in sorted((data / "python-doc" / "faq").glob("*.txt")):
        for heading, text in _read_rst_sections(path, "-="):
            parts = list(_split_words(text))
            if heading.endswith("?") and parts:
                first = len(passages)
                questions.append((heading, {first + n: 1 for n in range(len(parts))}))
                passages += [("", part) for part in parts]
    for folder in ("tutorial", "howto"):
        for path in sorted((data / "python-doc" / folder).glob("*.txt")):
            for _, text in _read_rst_sections(path, "-=*"):
                passages += [("", part) for part in _split_words(text)]
    return JudgedSet("faq", "en", *_sample_set(passages, questions))


def load_debian_faq(data: Path, language: str) -> JudgedSet:
    """Return questions of Debian's FAQ; passages are its answers without the questions."""
    text = (data / "debian-faq" / f"debian-faq.{language}.txt").read_text(encoding="utf-8")
    text = text.replace("\u00a0", " ")
    text = text[text.index("\n1.1. ") :]
    parts = re.split(r"^(\d+(?:\.\d+)+\. .+(?:\n\S.*){0,3})\n\n", text, flags=re.MULTILINE)
    passages: list[Passage] = []
    questions: list[tuple[str, Mapping[int, int]]] = []
    for heading, answer in zip(parts[1::2], parts[2::2], strict=False):
        question = " ".join(heading.split()).partition(" ")[2]
        cut = list(_split_words(answer))
        if "?" in question and cut:
            questions.append((question, {len(passages) + n: 1 for n in range(len(cut))}))
        passages += [("", part) for part in cut]
    return JudgedSet("faq", language, *_sample_set(passages, questions))


def load_cranfield(data: Path) -> JudgedSet:
    """Return abstracts on aerodynamics; original grades 1 to 4 are relevant, 5 is not."""
    folder = data / "cranfield"
    documents = _read_smart(folder / "cran.all.1400")
    queries = _read_smart(folder / "cran.qry")
    grades: dict[int, dict[int, int]] = {}
    for line in (folder / "cranqrel").read_text().splitlines():
        question, document, grade = (int(value) for value in line.split()[:3])
        if grade in range(1, 5):
            grades.setdefault(question, {})[document - 1] = 1
    passages = [(parts.get("T", ""), parts.get("W") or _NO_TEXT) for _, parts in documents]
    # Judgements number the questions consecutively; the questions' own numbers have gaps.
    questions = [
        (" ".join(parts["W"].split()), grades.get(number, {}))
        for number, (_, parts) in enumerate(queries, 1)
    ]
    return JudgedSet("scientific", "en", *_sample_set(passages, questions))


def load_cisi(data: Path) -> JudgedSet:
    """Return abstracts on library science."""
    folder = data / "cisi"
    grades: dict[int, dict[int, int]] = {}
    for line in (folder / "CISI.REL").read_text().splitlines():
        question, document = (int(value) for value in line.split()[:2])
        grades.setdefault(question, {})[document - 1] = 1
    passages = [
        (p.get("T", ""), p.get("W") or _NO_TEXT) for _, p in _read_smart(folder / "CISI.ALL")
    ]
    questions = [
        (" ".join(parts["W"].split()), grades.get(number, {}))
        for number, parts in _read_smart(folder / "CISI.QRY")
    ]
    return JudgedSet("scientific", "en", *_sample_set(passages, questions))


def load_cosqa(data: Path) -> JudgedSet:
    """Return queries of a search engine; passages are functions in Python."""
    folder = data / "cosqa"
    codes = json.loads((folder / "code_idx_map.txt").read_text(encoding="utf-8"))
    texts = {number: code for code, number in codes.items()}
    pairs = [
        load
        for name in ("test", "dev")
        for load in json.loads((folder / f"cosqa-retrieval-{name}-500.json").read_text("utf-8"))
        if load["label"] == 1
    ][:MAX_QUESTIONS]
    answers = list(dict.fromkeys(pair["retrieval_idx"] for pair in pairs))
    others = [number for number in sorted(texts) if number not in set(answers)]
    random.Random(1).shuffle(others)
    chosen = [*answers, *others][:MAX_PASSAGES]
    positions = {number: at for at, number in enumerate(chosen)}
    questions = [(pair["doc"], {positions[pair["retrieval_idx"]]: 1}) for pair in pairs]
    return JudgedSet("code", "en", [("", texts[number]) for number in chosen], questions)


def load_standard_library(_: Path) -> JudgedSet:
    """Return first sentences of the standard library's docstrings; passages are their functions."""
    functions: list[tuple[Passage, str]] = []
    root = Path(sysconfig.get_paths()["stdlib"])
    for path in sorted(root.glob("*.py")):
        source = path.read_text(encoding="utf-8", errors="replace")
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.FunctionDef) or len(node.body) < 2:
                continue
            docstring = ast.get_docstring(node) or ""
            sentence = " ".join(docstring.split("\n\n")[0].split())
            code = ast.get_source_segment(source, node) or ""
            first, rest = node.body[0], node.body[1]
            if len(sentence.split()) < 5 or len(code) > 4_000 or not docstring:
                continue
            lines = source.splitlines()
            head = "\n".join(lines[node.lineno - 1 : first.lineno - 1])
            body = "\n".join(lines[rest.lineno - 1 : node.end_lineno])
            functions.append(((path.name, f"{head}\n{body}"), sentence))
    random.Random(2).shuffle(functions)
    functions = functions[:MAX_PASSAGES]
    questions = [(text, {at: 1}) for at, (_, text) in enumerate(functions[:MAX_QUESTIONS])]
    return JudgedSet("code", "en", [passage for passage, _ in functions], questions)


def load_koel(data: Path) -> JudgedSet:
    """Return questions to a Laravel application; most need several code locations together."""
    root = data / "koel"
    passages: list[Passage] = []
    places: list[tuple[str, int, int]] = []
    for path in sorted(root.rglob("*.php")):
        name = path.relative_to(root).as_posix()
        for first, last, text in _split_methods(path.read_text(encoding="utf-8", errors="replace")):
            passages.append((name, text))
            places.append((name, first, last))
    questions = []
    for question in code_questions(root):
        grades = {
            at: 1
            for equals in question.answer
            for place in equals
            for at, (name, first, last) in enumerate(places)
            if name == place.path
            and (not place.lines or (first <= place.lines[1] and place.lines[0] <= last))
        }
        questions.append((question.question, grades))
    return JudgedSet("multi-hop", "en", *_sample_set(passages, questions))


def load_python_names(data: Path) -> JudgedSet:
    """Return names of Python's library as people type them; passages are their descriptions."""
    pattern = re.compile(
        r"^\.\. (?:function|class|exception|data|method|attribute):: ([\w.]+)(.*)\n"
        r"((?:\n|   .*\n)+)",
        re.MULTILINE,
    )
    descriptions: dict[str, str] = {}
    for path in sorted((data / "python-doc" / "library").glob("*.txt")):
        text = path.read_text(encoding="utf-8")
        current = re.search(r"^\.\. (?:current)?module:: ([\w.]+)", text, re.MULTILINE)
        module = current.group(1) if current else ""
        for name, rest, body in pattern.findall(text):
            full = name if name.startswith(module) or not module else f"{module}.{name}"
            if len(body.split()) >= 15:
                descriptions.setdefault(full, f"{name}{rest}\n{body[:1_200]}")
    names = sorted(descriptions)
    random.Random(3).shuffle(names)
    names = names[:MAX_PASSAGES]
    forms = ("{}", "what does {} do", "{} example", "when should I use {}?")
    questions = [
        (forms[at % len(forms)].format(name), {at: 1})
        for at, name in enumerate(names[:MAX_QUESTIONS])
    ]
    passages = [(name.rpartition(".")[0], descriptions[name]) for name in names]
    return JudgedSet("names", "en", passages, questions)


def load_git_help(_: Path) -> JudgedSet:
    """Return tasks and flags as questions; passages are the help of git's commands."""
    commands = sorted(_run_git("--list-cmds=main,nohelpers").split())
    helps = ((f"git {command}", _run_git(command, "-h")) for command in commands)
    passages = [(title, text) for title, text in helps if "usage:" in text]
    positions = {title: at for at, (title, _) in enumerate(passages)}
    entries: Mapping[str, Any] = YAML(typ="safe").load(
        _PROJECT / "benchmarks" / "agent_questions.yaml"
    )
    questions = [
        (
            entry["question"],
            {positions[page]: 1 for page in entry["pages"] or () if page in positions},
        )
        for entry in entries["git"]
        if entry["kind"] != "none"
    ]
    return JudgedSet("documentation", "en", passages, _drop_unanswered(questions))


def _run_git(*arguments: str) -> str:
    """Run git outside any repository, and return its output."""
    run = subprocess.run(
        ["git", *arguments],  # noqa: S607
        check=False,
        capture_output=True,
        text=True,
        timeout=20,
        cwd="/",
    )
    return run.stdout or run.stderr


def load_squad(data: Path, *, path: str, language: str) -> JudgedSet:
    """Return a set in SQuAD's format: questions to paragraphs of an encyclopedia."""
    passages: list[Passage] = []
    questions: list[tuple[str, Mapping[int, int]]] = []
    for article in json.loads((data / path).read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            # JSQuAD writes the title before the text.
            text = paragraph["context"].partition(" [SEP] ")[2] or paragraph["context"]
            questions += [(entry["question"], {len(passages): 1}) for entry in paragraph["qas"]]
            passages.append(("", text))
    return JudgedSet(
        "encyclopedia", language, *_sample_set(passages, questions, passages_limit=800)
    )


_XQUAD: Final = ("en", "de", "es", "ro", "tr", "vi", "ru", "el", "ar", "hi", "th", "zh")
SETS: Final[Mapping[str, Callable[[Path], JudgedSet]]] = {
    "handbook": partial(load_handbook, codes=False),
    "handbook-codes": partial(load_handbook, codes=True),
    "git": load_git_help,
    "workspace": load_workspace,
    "python-faq": load_python_faq,
    "debian-faq": partial(load_debian_faq, language="en"),
    **{
        f"debian-faq-{language}": partial(load_debian_faq, language=language)
        for language in ("de", "fr", "it", "ru")
    },
    "cranfield": load_cranfield,
    "cisi": load_cisi,
    "cosqa": load_cosqa,
    "stdlib": load_standard_library,
    "koel": load_koel,
    "python-names": load_python_names,
    **{
        f"xquad-{language}": partial(
            load_squad, path=f"xquad/xquad.{language}.json", language=language
        )
        for language in _XQUAD
    },
    "arcd-ar": partial(load_squad, path="arcd/arcd.json", language="ar"),
    "jsquad-ja": partial(load_squad, path="jsquad/valid-v1.3.json", language="ja"),
    "cmrc-zh": partial(load_squad, path="cmrc2018/cmrc2018_dev.json", language="zh"),
}
"""Functions that make the sets, by name."""


def _drop_unanswered(
    questions: Iterable[tuple[str, Mapping[int, int]]],
) -> list[tuple[str, Mapping[int, int]]]:
    return [(text, grades) for text, grades in questions if grades]


def _sample_set(
    passages: Sequence[Passage],
    questions: Iterable[tuple[str, Mapping[int, int]]],
    *,
    passages_limit: int = MAX_PASSAGES,
) -> tuple[list[Passage], list[tuple[str, Mapping[int, int]]]]:
    """Sample questions, then their passages and as many others as the limit allows."""
    answered = _drop_unanswered(questions)
    random.Random(4).shuffle(answered)
    answered = answered[:MAX_QUESTIONS]
    answer_positions = dict.fromkeys(at for _, grades in answered for at in sorted(grades))
    others = [at for at in range(len(passages)) if at not in answer_positions]
    random.Random(5).shuffle(others)
    chosen = sorted([*answer_positions, *others[: max(0, passages_limit - len(answer_positions))]])
    new_positions = {at: number for number, at in enumerate(chosen)}
    return (
        [passages[at] for at in chosen],
        [
            (text, {new_positions[at]: grade for at, grade in grades.items()})
            for text, grades in answered
        ],
    )


def _strip_markup(text: str) -> str:
    """Return the words alone, so that a quote matches its passage despite markup."""
    return " ".join(re.findall(r"[^\W_]+", text))


def _split_words(text: str) -> Iterator[str]:
    words = text.split()
    for at in range(0, len(words), _WORDS_PER_PASSAGE):
        yield " ".join(words[at : at + _WORDS_PER_PASSAGE])


def _read_markdown_sections(root: Path) -> Iterator[Passage]:
    for path in sorted([*root.rglob("*.md"), *root.rglob("*.html")]):
        text = re.sub(r"<h\d[^>]*>", "\n#", path.read_text(encoding="utf-8"))
        text = html.unescape(re.sub(r"<[^>]+>|[*`]", "", text))
        title = path.stem.replace("-", " ")
        yield from ((title, " ".join(part.split())) for part in re.split(r"\n(?=#)", text))


def _read_rst_sections(path: Path, underlines: str) -> Iterator[Passage]:
    text = path.read_text(encoding="utf-8")
    parts = re.split(rf"^(\S.+)\n[{re.escape(underlines)}]{{4,}}\n", text, flags=re.MULTILINE)
    yield from zip(parts[1::2], parts[2::2], strict=True)


def _read_smart(path: Path) -> list[tuple[int, dict[str, str]]]:
    """Read a file of the SMART collection: numbers with their fields by letter."""
    text = path.read_text(encoding="utf-8", errors="replace")
    documents = []
    for block in re.split(r"^\.I ", text, flags=re.MULTILINE)[1:]:
        number, _, rest = block.partition("\n")
        parts = re.split(r"^\.([A-Z]) *\n", rest, flags=re.MULTILINE)
        fields = dict(zip(parts[1::2], (p.strip() for p in parts[2::2]), strict=True))
        documents.append((int(number), fields))
    return documents


def _split_methods(text: str) -> Iterator[tuple[int, int, str]]:
    """Split source code before its methods; yield first line, last line and text."""
    lines = text.splitlines()
    starts = [0]
    for at, line in enumerate(lines):
        is_method = re.match(r"    (?:/\*\*|#\[|(?:\w+ )*function )", line)
        if is_method and at - starts[-1] >= 8:
            starts.append(at)
    for first, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield first + 1, end, "\n".join(lines[first:end])[:3_000]


def _read_lines(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)
