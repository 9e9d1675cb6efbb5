"""Texts of a repository: Markdown documents, and the events of agent runs."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.languages.tree import add_rest_units
from rag_assets.systems.code_memory.settings.entries import ITEM, read_yaml_entries
from rag_assets.systems.code_memory.symbols.model import CodeText, Unit, sort_facts
from rag_assets.systems.code_memory.symbols.names import FILE, RUN

_SECTION_LEVEL: Final = 3
"""Deepest level of headings that start a section."""

_FENCE: Final = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})")
_HEADING: Final = re.compile(r" {0,3}(?P<marks>#{1,6})[ \t]++(?P<title>[^\n]*+)")
_UNDERLINE: Final = re.compile(r" {0,3}(?P<mark>=++|-++)[ \t]*+\r?$")
_ITEM: Final = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]")
_BUGS: Final = re.compile(r"(?i)known[ _-](?:bugs?|issues?|problems?|defects?|limitations?)\b")
_SPAN: Final = re.compile(r"(?<!`)`(?P<code>[^`\n]{2,200})`(?!`)|\]\((?P<link>[^()\s]{1,300})\)")
_PATH: Final = re.compile(
    r"(?:\.{0,2}/)?(?:[\w@.-]+/)+[\w@.-]*\w"
    r"|[\w.-]+\.(?:php|py|pyi|[cm]?[jt]sx?|vue|svelte|mdc?|mdx|json|ya?ml|toml|ini|env|swift|go|java|kt"
    r"|rs|rb|sql|sh|xml|html|css|scss|txt|lock|cs|c|h|cpp)"
)
_QUALIFIED: Final = re.compile(
    r"\\?[A-Z]\w*(?:\\[A-Z]\w*)+(?:(?:::|@)\w+(?:\(\))?)?|[A-Z]\w*(?:::|@|\.)\w+(?:\(\))?"
    r"|[a-z_]\w*(?:\.[a-z_]\w*)*\.[A-Z]\w*|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+"
)
_ROUTE: Final = re.compile(r"(?:GET|POST|PUT|PATCH|DELETE|HEAD) /[^\s]*|/[\w{}:./-]+")
_DOTTED_NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:[._][a-z0-9]+)+")


def read_markdown(text: str) -> CodeText:
    """Return the sections of a Markdown text as units, and facts of two kinds.

    - `applies_to` {globs, always}: the files that a rule's front matter names.
    - `mentions` {name, what}: a name in a code span or link; `what` is path, symbol, route or name.
    """
    sections = _find_sections(text)
    facts = [*_iter_front_matter_facts(text), *_iter_mention_facts(text, sections)]
    return CodeText(add_rest_units(text, sections), sort_facts(facts))


def list_known_bugs(text: str) -> tuple[Unit, ...]:
    """Return the bugs in a Markdown list of known bugs as units: sections or list items."""
    sections = _find_sections(text)
    inner = [section for section in sections if section.symbol.count(" > ") == 1] or sections
    if len(inner) > 1:
        return add_rest_units(text, list(_extend_sections(sections, inner)))
    starts = [at for at, line in _iter_lines_outside_code(text) if _ITEM.match(line)]
    spans = zip(starts, [*starts[1:], len(text)], strict=False)
    heading = inner[0].symbol if inner else ""
    items = [
        Unit(start, start + len(text[start:after].rstrip()), "section", heading)
        for start, after in spans
    ]
    return add_rest_units(text, items)


def is_bug_list(text: str) -> bool:
    """Return whether the first heading of a Markdown text announces a list of known bugs."""
    first = next(_find_headings(text), None)
    return first is not None and _BUGS.match(first[2]) is not None


def _extend_sections(sections: Sequence[Unit], bugs: Sequence[Unit]) -> Iterator[Unit]:
    """Yield the sections `bugs`, each extended to the end of its last subsection."""
    starts = [bug.start for bug in bugs]
    ends = dict.fromkeys(starts, 0)
    for section in sections:
        index = bisect_right(starts, section.start) - 1
        if index >= 0:
            ends[starts[index]] = section.end
    return (Unit(bug.start, ends[bug.start], "section", bug.symbol) for bug in bugs)


def _iter_lines_outside_code(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines outside code fences and front matter, with their offsets."""
    at, fence = _find_front_matter_end(text), ""
    for line in text[at:].splitlines(keepends=True):
        mark = _FENCE.match(line)
        if fence:
            if mark is not None and mark["mark"].startswith(fence):
                fence = ""
        elif mark is not None:
            fence = mark["mark"]
        else:
            yield at, line
        at += len(line)


def _find_headings(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield offset, level and title of each heading."""
    before, previous, after = 0, "", -1
    for at, line in _iter_lines_outside_code(text):
        heading, under = _HEADING.match(line), _UNDERLINE.match(line)
        if heading is not None:
            yield at, len(heading["marks"]), heading["title"].strip().rstrip("#").strip()
        elif under is not None and previous.strip() and after == at:
            yield before, 1 if under["mark"][0] == "=" else 2, previous.strip()
        plain = heading is None and under is None and not line.startswith((" ", "-", ">", "|"))
        before, previous, after = at, line if plain else "", at + len(line)


def _find_sections(text: str) -> list[Unit]:
    """Return sections down to _SECTION_LEVEL, named by their heading and the headings above."""
    headings = [heading for heading in _find_headings(text) if heading[1] <= _SECTION_LEVEL]
    units: list[Unit] = []
    above: list[tuple[int, str]] = []
    ends = [start for start, _, _ in headings[1:]]
    for (start, level, title), after in zip(headings, [*ends, len(text)], strict=False):
        while above and above[-1][0] >= level:
            above.pop()
        above.append((level, title))
        end = start + len(text[start:after].rstrip())
        name = " > ".join(heading for _, heading in above)
        units.append(Unit(start, end, "section", name, alone=False))
    return units


def _find_front_matter_end(text: str) -> int:
    """Return the offset after the front matter; 0 if there is none."""
    if not text.startswith(("---\n", "---\r\n")):
        return 0
    end = text.find("\n---", 3)
    line = text.find("\n", end + 4)
    return 0 if end < 0 else (len(text) if line < 0 else line + 1)


def _iter_front_matter_facts(text: str) -> Iterator[Fact]:
    """Yield a fact `applies_to` with the globs of files that a rule's front matter names."""
    end = _find_front_matter_end(text)
    entries, _ = read_yaml_entries(text[:end]) if end else ((), True)
    keys = {entry.path[0]: entry.value for entry in entries if len(entry.path) == 1 and entry.value}
    globs = [part.strip() for part in (keys.get("globs") or keys.get("paths") or "").split(",")]
    globs = [glob.strip("\"'") for glob in globs]
    list_paths = {("globs", ITEM), ("paths", ITEM)}
    globs += [entry.value for entry in entries if entry.value and entry.path in list_paths]
    always = (keys.get("alwaysApply") or "").lower() == "true"
    values = {"globs": [glob for glob in globs if glob], "always": always}
    if any(values.values()):
        yield Fact("applies_to", 0, min(end, 1_000), "", values)


def _iter_mention_facts(text: str, sections: Sequence[Unit]) -> Iterator[Fact]:
    starts = [section.start for section in sections]
    for at, line in _iter_lines_outside_code(text):
        for match in _SPAN.finditer(line):
            if (fields := _classify_name(match)) is not None:
                index = bisect_right(starts, at) - 1
                symbol = sections[index].symbol if index >= 0 else ""
                values = {"name": fields[0], "what": fields[1]}
                yield Fact("mentions", at + match.start(), at + match.end(), symbol, values)


def _classify_name(match: re.Match[str]) -> tuple[str, str] | None:
    """Return a name in a code span or link, and its kind (`what`); else None."""
    link = match["link"]
    if link is not None:
        path = link.partition("#")[0]
        is_external = "://" in path or path.startswith(("mailto:", "//"))
        return None if is_external or not path else (path, "path")
    code = match["code"].strip()
    for pattern, what in (
        (_QUALIFIED, "symbol"),
        (_ROUTE, "route"),
        (_PATH, "path"),
        (_DOTTED_NAME, "name"),
    ):
        if pattern.fullmatch(code):
            return code.removesuffix("()").lstrip("\\"), what
    return None


RUN_EVENT: Final = "text/x-run-event"

_SUMMARY: Final = "final_summary"
_EVENT_HEADING: Final = re.compile(
    r"(?P<kind>final_summary|file_(?:created|updated|deleted))(?: (?P<path>\S.*))?"
)
_RUN: Final = "run: "
_ACTION: Final = "action: "


def render_run_event(kind: str, run: str, path: str | None, action: str, summary: str) -> str:
    """Return the text of one event of an agent run.

    Args:
        kind: file_created, file_updated, file_deleted or final_summary.
        run: the id of the run.
        path: the path of the file within its repository; None for a summary of the run.
        action: a few words about the change of the file, on one line; "" if absent.
        summary: prose; "" if absent.
    """
    lines = [f"{kind} {path}" if path else kind, _RUN + run]
    if action:
        lines.append(_ACTION + action)
    above = "\n".join(lines)
    return f"{above}\n\n{summary.strip()}\n" if summary.strip() else f"{above}\n"


def read_run_event(text: str) -> CodeText:
    """Return the text of one event of an agent run as a single unit, with its facts."""
    end = len(text.rstrip())
    head = text.partition("\n\n")[0].split("\n")
    heading = _EVENT_HEADING.fullmatch(head[0])
    run = next((line.removeprefix(_RUN) for line in head[1:] if line.startswith(_RUN)), "")
    if heading is None or not run or (heading["path"] is None) != (heading["kind"] == _SUMMARY):
        unit = Unit(0, end, "rest", alone=False)
        return CodeText(
            (unit,), (), ("not a valid event of a run: expected a heading and a line `run: ID`",)
        )
    name = RUN + run
    cuts = tuple(newline.end() for newline in re.finditer("\n", text[:end]))
    unit = Unit(0, end, "derived", name, heading.group(), cuts=cuts)
    values = {"role": "run", "public": True, "called": [name.lower()]}
    facts = [Fact("declares", 0, heading.end(), name, values)]
    if heading["path"] is not None:
        changed = {"file": FILE + heading["path"], "run": name}
        facts.append(Fact("changed_by", 0, heading.end(), name, changed))
    return CodeText((unit,), tuple(facts))
