"""Pages from man pages, rendered by mandoc or pandoc.

Man pages are written in mdoc(7) or man(7). mandoc renders mdoc as Markdown and man as text; pandoc
renders man as Markdown. `aws help` prints a man page made by docutils. This module converts it
itself, because a terminal renderer would hyphenate even exact names.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Final, Literal, TypeAlias

from rag_assets.common.errors import ConfigurationError
from rag_assets.systems.agent_docs.command_runner import (
    MAX_BYTES,
    CallLimitReached,
    CommandRunner,
    filter_search_path,
    find_command,
    read_version,
    strip_formatting,
)
from rag_assets.systems.agent_docs.pages import Corpus, Page, page_from_help

_DEFAULT_ROOTS: Final = (Path("/usr/local/share/man"), Path("/usr/share/man"))
_MDOC = re.compile(rb"^\.Dd\b", re.MULTILINE)
_ALIAS = re.compile(rb"\A(?:[.'](?:\\\"| *$).*\n)*\.so +(\S+)")
"""A page that consists of a reference to another page."""
_MAX_ALIASES: Final = 5
"""Maximum number of references that are followed from a page; a further one is rendered as is."""
_HEADING = re.compile(r"^(?=#+ )", re.MULTILINE)
_MARKDOWN_EDGES = re.compile(r"\A\S+\(\d\w*\) - .*\n|\n.*\w - .+\Z")
_TEXT_EDGES = re.compile(r"\A[^\n]*\n|\n[^\n]*\Z")
"""The first and last line that mandoc adds: the page's name, the system and its date."""


@dataclass(frozen=True, slots=True)
class _Renderer:
    """A program that renders one format of man pages.

    Attributes:
        argv: the command, without the file.
        is_markdown: whether it prints Markdown rather than plain text.
    """

    argv: tuple[str, ...]
    is_markdown: bool = True

    def render(self, runner: CommandRunner, command: str, version: str, file: Path) -> Page | None:
        """Render a file as the page of a command; None if that fails."""
        output = runner.run([*self.argv, str(file)])
        text = strip_formatting(output.text)
        if output.exit_code != 0 or not text.strip():
            return None
        if not self.is_markdown:
            return page_from_help(command, version, _TEXT_EDGES.sub("", text))
        # mandoc escapes hyphens: `-&#45;all`
        markdown = unescape(text).replace("\N{NO-BREAK SPACE}", " ")
        # Every heading moves down one level, because the title of the page is the command.
        return Page(command, version, _HEADING.sub("#", _MARKDOWN_EDGES.sub("", markdown)))


def build_man_pages(
    commands: Sequence[str], variables: Mapping[str, str], *, max_calls: int
) -> Corpus:
    """Create pages from the man pages of commands and their subcommands.

    Args:
        commands: names of man pages; `git` includes `git-add`.
        variables: environment variables.

    Raises:
        ConfigurationError: no renderer is installed, or a command has no man page.
    """
    renderers = _find_renderers(filter_search_path(variables))
    if not any(renderers.values()):
        raise ConfigurationError(
            "neither mandoc nor pandoc is installed",
            hint="install mandoc or pandoc, or use --from help",
        )
    pages: list[Page] = []
    warnings: list[str] = []
    with tempfile.TemporaryDirectory(prefix="rag-assets-man-") as home:
        runner = CommandRunner(Path(home), variables, max_calls=max_calls)
        draft = Path(home) / "page"
        for command in commands:
            files = _find_man_files(command.replace(" ", "-"), variables)
            if not files:
                raise ConfigurationError(
                    f"{command} has no man page", hint="use --from help, or set MANPATH"
                )
            program = find_command(command.split()[0], variables)
            try:
                version = read_version(runner, program)
                for title, file in files:
                    source = _read_source(file)
                    draft.write_bytes(source)
                    source_format = "mdoc" if _MDOC.search(source) else "man"
                    renderer = renderers[source_format]
                    name = title.replace("-", " ")
                    page = renderer and renderer.render(runner, name, version, draft)
                    if page:
                        pages.append(page)
                    elif renderer is None:
                        warnings.append(
                            f"{name}: it is written in {source_format}, which needs mandoc;"
                            " it is left out"
                        )
                    else:
                        program_name = Path(renderer.argv[0]).name
                        warnings.append(
                            f"{name}: {program_name} cannot render its page; it is left out"
                        )
            except CallLimitReached:
                warnings.append(f"{command}: more than {max_calls:,} calls; the rest is left out")
                break
    return Corpus(tuple(pages), tuple(warnings))


def _find_renderers(path: str) -> dict[str, _Renderer | None]:
    """Return the renderer for each format; pandoc's Markdown is preferred to mandoc's text."""
    mandoc, pandoc = (shutil.which(name, path=path) for name in ("mandoc", "pandoc"))
    text = _Renderer((mandoc, "-T", "utf8"), is_markdown=False) if mandoc else None
    markdown = ("-f", "man", "-t", "gfm", "--wrap=none", "--quiet", "--sandbox")
    return {
        "mdoc": _Renderer((mandoc, "-T", "markdown")) if mandoc else None,
        "man": _Renderer((pandoc, *markdown)) if pandoc else text,
    }


def _find_man_files(name: str, variables: Mapping[str, str]) -> list[tuple[str, Path]]:
    """Return title and file of the pages in section 1 about a command and its subcommands."""
    configured = map(Path, variables.get("MANPATH", "").split(os.pathsep))
    files: dict[str, Path] = {}
    for root in [folder for folder in configured if folder.is_absolute()] or _DEFAULT_ROOTS:
        for file in sorted((root / "man1").glob(f"{name}*.1*")):
            title = file.name.partition(".1")[0]
            if title == name or title.startswith(f"{name}-"):
                files.setdefault(title, file)
    return sorted(files.items())


def _read_source(file: Path) -> bytes:
    """Return the source of a page, following references to other pages in the same root."""
    root = file.parent.parent
    source = _read_unpacked(file)
    for _ in range(_MAX_ALIASES):
        alias = _ALIAS.match(source)
        if alias is None:
            break
        target = root / os.fsdecode(alias[1])
        candidates = (target, target.with_name(f"{target.name}.gz"))
        existing = next((path for path in candidates if path.is_file()), None)
        if existing is None or not existing.resolve().is_relative_to(root.resolve()):
            break
        source = _read_unpacked(existing)
    return source


def _read_unpacked(file: Path) -> bytes:
    with file.open("rb") as source:
        if file.suffix != ".gz":
            return source.read(MAX_BYTES)
        with gzip.open(source) as unpacked:
            return unpacked.read(MAX_BYTES)


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


def roff_to_markdown(text: str) -> str:
    """Convert a man page of docutils to Markdown; definitions become list items."""
    reader = _RoffReader()
    for line in _select_content_lines(text):
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


def _select_content_lines(text: str) -> Iterator[str]:
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
                self._add("heading", [marks, title.capitalize() if request == "SH" else title])
            case "sp":
                self._is_break = True
            case "nf":
                self._add("code")
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
                self._add("item")
                self._indents[-1] += 2

    def _add(self, kind: _BlockKind, lines: Sequence[str] = ()) -> None:
        self.blocks.append(_Block(kind, self._indents[-1], list(lines)))
        self._is_break = kind == "heading"
        self._term = None

    def _read_text(self, line: str) -> None:
        last = self.blocks[-1] if self.blocks else None
        if self._term is not None and self._term is last:
            self._term.lines[-1] += ":"
            self._term, self._is_break = None, False
        if last is None or self._is_break or last.kind == "code":
            self._add("text")
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
    """Convert bold text to Markdown: as code if it looks like code."""
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
