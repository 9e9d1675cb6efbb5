"""Documentation pages: Markdown files with a command and its version in their front matter.

`aws help` prints a man page made by docutils. This module converts it itself, because a terminal
renderer would hyphenate even exact names.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import dedent
from typing import Final, Literal, TypeAlias

from rag_assets.common.private_files import write_atomically
from rag_assets.systems.agent_docs.command_runner import CommandRunner, read_version

_FRONT_MATTER = "---\ngenerator: rag-assets agent docs\ncommand: {}\nversion: {}\n---\n"
_FRONT_MATTER_BYTES: Final = 1_000
_READ_FRONT_MATTER = re.compile(rf"\A{_FRONT_MATTER.format('(.*)', '(.*)')}")
_PAGE_EDGE = re.compile(r"^[\w-]+\(\d?\) .*\)\s*$|^ {10,}[\w-]+\(\d?\)$", re.MULTILINE)
"""The first and last line of a man page."""
_MAX_REPEATED_CHARACTERS: Final = 400
"""Sections longer than this are not repeated on a second page."""
_MAX_HEADING_CHARACTERS: Final = 80
"""Maximum characters of a heading; a longer line is not a heading."""
_BACKTICKS = re.compile(r"`{3,}")


@dataclass(frozen=True, slots=True)
class CommandPage:
    """A page about a command.

    Attributes:
        command: the command with its subcommands: `git remote add`.
        text: Markdown below the title.
    """

    command: str
    version: str
    text: str

    @property
    def file_name(self) -> str:
        """Return the name of the page's Markdown file, derived from the command."""
        return "-".join(re.sub(r"[^\w.+-]", "_", word) for word in self.command.split()) + ".md"

    def render(self) -> str:
        """Return the content of the file; the same command version gives the same content."""
        front_matter = _FRONT_MATTER.format(self.command, self.version)
        return f"{front_matter}\n# {self.command}\n\n{self.text.strip()}\n"


@dataclass(frozen=True, slots=True)
class Corpus:
    """Pages in the order of their commands, and warnings about parts that were left out."""

    pages: tuple[CommandPage, ...]
    warnings: tuple[str, ...]


def build_page_from_help(command: str, version: str, text: str, summary: str = "") -> CommandPage:
    """Create a page from plain help; each section is a heading and a verbatim block.

    Args:
        summary: the description in the parent command's help; added if the text lacks it.
    """
    parts = [summary] if summary and summary.rstrip(".") not in text else []
    for heading, body in _split_sections(_PAGE_EDGE.sub("", text)):
        if heading:
            parts.append(f"## {heading}")
        if body.strip():
            runs = [len(run) for run in _BACKTICKS.findall(body)]
            fence = "`" * (max(runs, default=2) + 1)
            lines = "\n".join(line.rstrip() for line in dedent(body).split("\n"))
            parts.append(f"{fence}text\n{lines}\n{fence}")
    return CommandPage(command, version, "\n\n".join(parts))


def drop_name_section_if_empty(text: str) -> str:
    """Remove the section "Name" of a man page if the section contains only the name."""
    return re.sub(r"\A## Name\n\n\S+ -\s*(?=## )", "", text)


def drop_repeated_sections(page: CommandPage, owners: dict[str, str]) -> CommandPage:
    """Replace long sections that an earlier page contains with a reference to that page.

    Args:
        owners: for the text of each section so far, the command whose page contains it first. The
            sections of this page are added.
    """
    first, *sections = re.split(r"^(?=## )", page.text, flags=re.MULTILINE)
    kept_sections = [first]
    for section in sections:
        body = section.strip()
        is_long = len(body) > _MAX_REPEATED_CHARACTERS
        owner = owners.setdefault(body, page.command) if is_long else page.command
        heading = section.partition("\n")[0]
        reference = f"{heading}\n\nThe same as of `{owner}`.\n\n"
        kept_sections.append(section if owner == page.command else reference)
    return replace(page, text="".join(kept_sections))


def write_pages(
    pages: Iterable[CommandPage], folder: Path, *, replacing: Sequence[str] = ()
) -> tuple[int, int]:
    """Write pages, and delete outdated pages.

    Args:
        folder: the folder of the pages; created if it is missing.
        replacing: commands for which `pages` is complete; all other pages of these commands are
            deleted.

    Returns:
        the number of written files and of deleted files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    by_name = {page.file_name: page for page in pages}
    commands = [" ".join(command.split()) for command in replacing]
    written_pages = deleted = 0
    for name, page in by_name.items():
        path, text = folder / name, page.render()
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            draft = folder / f".{name}.new"
            # An existing draft may be a link, and is never written to.
            draft.unlink(missing_ok=True)
            with draft.open("x", encoding="utf-8") as file:
                file.write(text)
            draft.replace(path)
            written_pages += 1
    for path in sorted(folder.glob("*.md")):
        facts = read_front_matter(path) if path.name not in by_name else None
        if facts and any(f"{facts[0]} ".startswith(f"{command} ") for command in commands):
            path.unlink()
            deleted += 1
    return written_pages, deleted


def read_front_matter(path: Path) -> tuple[str, str] | None:
    """Return the command and version of a page; None for a file that this module did not write."""
    try:
        with path.open("rb") as file:
            head = file.read(_FRONT_MATTER_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    match = _READ_FRONT_MATTER.match(head)
    return None if match is None else (match[1], match[2])


def _split_sections(text: str) -> Iterator[tuple[str, str]]:
    """Yield the headings and bodies of plain help; the heading of the first section is empty."""
    heading = ""
    lines: list[str] = []
    for line in text.split("\n"):
        if (name := _parse_heading(line)) is not None:
            yield heading, "\n".join(lines).strip("\n")
            heading, lines = name, []
        else:
            lines.append(line)
    yield heading, "\n".join(lines).strip("\n")


def _parse_heading(line: str) -> str | None:
    """Return the heading in an unindented line that ends in a colon or is all capitals.

    The result is None for other lines and for `usage:`.
    """
    if not line or line[0].isspace() or len(line) > _MAX_HEADING_CHARACTERS:
        return None
    bare = line.rstrip()
    if bare.endswith(":") and not bare.lower().startswith("usage"):
        return bare[:-1]
    return bare.capitalize() if re.fullmatch(r"[A-Z][A-Z -]+", bare) else None


def record_programs(programs: Mapping[str, str]) -> None:
    """Record the file of each documented program, so that find_version_warnings can run it."""
    recorded = {**_read_programs(), **programs}
    write_atomically(_get_programs_path(), json.dumps(recorded, indent=1, sort_keys=True))


def find_version_warnings(files: Iterable[Path]) -> list[str]:
    """Return a warning for each recorded program whose version differs from its pages.

    Args:
        files: documentation files; files that this module did not write are ignored.
    """
    versions: dict[str, str] = {}
    for facts in filter(None, map(read_front_matter, files)):
        versions.setdefault(facts[0].split()[0], facts[1])
    programs = {name: file for name, file in _read_programs().items() if name in versions}
    if not programs:
        return []
    lines = []
    with tempfile.TemporaryDirectory(prefix="rag-assets-help-") as home:
        runner = CommandRunner(Path(home), os.environ)
        for name, file in sorted(programs.items()):
            try:
                installed = read_version(runner, file)
            except OSError:
                continue  # The program was uninstalled, so its pages cannot be outdated.
            if installed != versions[name]:
                lines.append(f"{name} is {installed}, its pages are of {versions[name]}")
    return lines


def _read_programs() -> dict[str, str]:
    try:
        programs = json.loads(_get_programs_path().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    is_mapping = isinstance(programs, dict)
    return {str(name): str(file) for name, file in programs.items()} if is_mapping else {}


def _get_programs_path() -> Path:
    configured = os.environ.get("XDG_STATE_HOME")
    folder = Path(configured) if configured else Path.home() / ".local" / "state"
    return folder / "rag-assets" / "agent-docs.json"


_DOCUTILS_MARK: Final = '.\\" Man page generated from reStructuredText'
_FONT = re.compile(r"\\f([BIRPC])")
_ESCAPE = re.compile(r"\\(?:\((..)|\[([^\]]*)\]|(.))")
_NAMED_CHARACTERS: Final = {
    "aq": "'",
    "dq": '"',
    "bu": "•",
    "lq": "“",
    "rq": "”",
    "em": "—",
    "en": "–",
}
_ESCAPED_CHARACTERS: Final = {"-": "-", "e": "\\", "\\": "\\", " ": " ", "~": " "}
_CODE = re.compile(r"\S+|-.*|.*(?:--|://|=).*")
_SUBCOMMANDS = re.compile(r"^## available (?:commands|services)$", re.IGNORECASE)
_ITEM = re.compile(r"^ *- ([a-z0-9][\w.-]*)$")
_BlockKind: TypeAlias = Literal["heading", "text", "item", "code"]


@dataclass(slots=True)
class _Block:
    kind: _BlockKind
    indent: int
    lines: list[str] = field(default_factory=list)

    def render(self) -> str:
        margin = " " * self.indent
        if self.kind == "code":
            return "\n".join(f"{margin}{line}".rstrip() for line in ["```", *self.lines, "```"])
        text = " ".join(" ".join(self.lines).split())
        return f"{margin}- {text}" if self.kind == "item" else f"{margin}{text}"


def is_docutils(text: str) -> bool:
    """Return whether a text is a man page in the form that docutils writes."""
    return text.lstrip().startswith(_DOCUTILS_MARK)


def convert_roff_to_markdown(text: str) -> str:
    """Convert a man page of docutils to Markdown; definitions become list items."""
    reader = _RoffReader()
    for line in _iter_content_lines(text):
        reader.read(line)
    parts: list[str] = []
    previous: _Block | None = None
    for block in reader.blocks:
        if not block.lines:
            continue
        if previous is not None:
            is_item = (previous.kind, previous.indent) == ("item", block.indent)
            parts.append("\n" if is_item and block.kind == "item" else "\n\n")
        parts.append(block.render())
        previous = block
    return "".join(parts)


def list_subcommands(markdown: str) -> list[str]:
    """Return the subcommands that a page lists."""
    names: list[str] = []
    is_list = False
    for line in markdown.split("\n"):
        if line.startswith("#"):
            is_list = _SUBCOMMANDS.match(line) is not None
        elif is_list and (item := _ITEM.match(line)) is not None:
            names.append(item[1])
    return [name for name in names if name != "help"]


def _iter_content_lines(text: str) -> Iterator[str]:
    """Yield the lines of a page, without comments and macro definitions."""
    is_macro = False
    for line in text.split("\n"):
        if line.startswith(".de1"):
            is_macro = True
        elif is_macro:
            is_macro = line != ".."
        elif line not in {"", "."} and not line.startswith('.\\"'):
            yield line


class _RoffReader:
    """Converts lines of a man page to blocks."""

    def __init__(self) -> None:
        self.blocks: list[_Block] = []
        self._indents = [0]
        self._is_code = self._is_break = False
        self._term: _Block | None = None
        """A term with a definition that follows on the next line."""

    def read(self, line: str) -> None:
        if self._is_code and line != ".fi":
            if not line.startswith(".ft"):
                self.blocks[-1].lines.append(_unescape(line))
        elif line.startswith("."):
            request, _, rest = line[1:].partition(" ")
            self._read_request(request, rest)
        else:
            self._read_text(line)

    def _read_request(self, request: str, rest: str) -> None:
        match request:
            case "SH" | "SS":
                title = _unescape(rest.strip('"'))
                marks = "##" if request == "SH" else "###"
                self._add_block(
                    "heading", [marks, title.capitalize() if request == "SH" else title]
                )
            case "sp":
                self._is_break = True
            case "nf":
                self._add_block("code")
                self._is_code = True
            case "fi":
                self._is_code = False
                self._is_break = True
            case "INDENT":
                self._indent(float(rest.split(maxsplit=1)[0]))
            case "UNINDENT":
                if len(self._indents) > 1:
                    self._indents.pop()
                self._is_break = True
                self._term = None
            case "IP":
                self._indents[-1] = self._indents[-2] if len(self._indents) > 1 else 0
                self._add_block("item")
                self._indents[-1] += 2

    def _add_block(self, kind: _BlockKind, lines: Sequence[str] = ()) -> None:
        self.blocks.append(_Block(kind, self._indents[-1], list(lines)))
        self._is_break = kind == "heading"
        self._term = None

    def _read_text(self, line: str) -> None:
        last = self.blocks[-1] if self.blocks else None
        if self._term is not None and self._term is last:
            self._term.lines[-1] += ":"
            self._term, self._is_break = None, False
        if last is None or self._is_break or last.kind == "code":
            self._add_block("text")
        self.blocks[-1].lines.append(_convert_fonts(line))

    def _indent(self, width: float) -> None:
        last = self.blocks[-1] if self.blocks else None
        indent = self._indents[-1]
        if width and last is not None and last.kind == "text" and last.indent == indent:
            last.kind = "item"
            self._term = last
            indent += 2
        self._indents.append(indent)


def _convert_fonts(line: str) -> str:
    """Convert bold text to Markdown: to code if it looks like code, else to bold."""
    pieces = _FONT.split(line)
    text = _unescape(pieces[0])
    for font, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        plain = _unescape(piece)
        if font == "B" and plain.strip():
            mark = "`" if _CODE.fullmatch(plain) and "`" not in plain else "**"
            text += f"{mark}{plain}{mark}"
        else:
            text += plain
    return text


def _unescape(text: str) -> str:
    def replace_escape(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        if name:
            return _NAMED_CHARACTERS.get(name, "")
        return _ESCAPED_CHARACTERS.get(match[3] or "", "")

    return _ESCAPE.sub(replace_escape, text)
