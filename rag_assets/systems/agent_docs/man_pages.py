"""Pages made from man pages, which mandoc or pandoc renders.

Man pages are written in mdoc(7) or man(7). mandoc renders mdoc as Markdown and man as text; pandoc
renders man as Markdown. The help of aws is a man page of docutils, which is converted here: a
terminal's rendering would hyphenate words at line ends, exact names among them.
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
from typing import Final, Literal

from rag_assets.common.errors import ConfigurationError
from rag_assets.systems.agent_docs.calls import (
    MAX_BYTES,
    Caller,
    TooManyCalls,
    executable,
    plain,
    search_path,
    version_of,
)
from rag_assets.systems.agent_docs.pages import Corpus, Page, page_of_help

_MARK: Final = '.\\" Man page generated from reStructuredText'
_FONT = re.compile(r"\\f([BIRPC])")
_ESCAPE = re.compile(r"\\(?:\((..)|\[([^\]]*)\]|(.))")
_NAMED: Final = {"aq": "'", "dq": '"', "bu": "•", "lq": "“", "rq": "”", "em": "—", "en": "–"}
_SINGLE: Final = {"-": "-", "e": "\\", "\\": "\\", " ": " ", "~": " "}
_CODE = re.compile(r"\S+|-.*|.*(?:--|://|=).*")
_COMMANDS = re.compile(r"^## available (?:commands|services)$", re.IGNORECASE)
_ITEM = re.compile(r"^ *- ([a-z0-9][\w.-]*)$")


@dataclass(slots=True)
class _Block:
    kind: Literal["heading", "text", "item", "code"]
    indent: int
    lines: list[str] = field(default_factory=list)

    def written(self) -> str:
        margin = " " * self.indent
        if self.kind == "code":
            return "\n".join(f"{margin}{line}".rstrip() for line in ["```", *self.lines, "```"])
        text = " ".join(" ".join(self.lines).split())
        return f"{margin}- {text}" if self.kind == "item" else f"{margin}{text}"


def is_docutils(text: str) -> bool:
    """Whether a text is a man page as docutils writes it."""
    return text.lstrip().startswith(_MARK)


def markdown_of(text: str) -> str:
    """A man page of docutils as Markdown, its definitions as items of lists."""
    reader = _Reader()
    for line in _without_macros(text):
        reader.read(line)
    found = [block for block in reader.blocks if block.lines]
    parts: list[str] = []
    for at, block in enumerate(found):
        likes = [(one.kind, one.indent) for one in found[max(0, at - 1) : at]]
        is_next = block.kind == "item" and likes == [("item", block.indent)]
        parts.append(("" if at == 0 else "\n" if is_next else "\n\n") + block.written())
    return "".join(parts)


def commands_of(markdown: str) -> list[str]:
    """The subcommands that a page lists."""
    found: list[str] = []
    within = False
    for line in markdown.split("\n"):
        if line.startswith("#"):
            within = _COMMANDS.match(line) is not None
        elif within and (item := _ITEM.match(line)) is not None:
            found.append(item[1])
    return [name for name in found if name != "help"]


def _without_macros(text: str) -> Iterator[str]:
    """The lines of a page without comments and the macros that it defines."""
    defined = False
    for line in text.split("\n"):
        if line.startswith(".de1"):
            defined = True
        elif defined:
            defined = line != ".."
        elif line not in {"", "."} and not line.startswith('.\\"'):
            yield line


class _Reader:
    """Reads lines into blocks."""

    def __init__(self) -> None:
        self.blocks: list[_Block] = []
        self._indents = [0]
        self._code = self._broken = False
        self._joins: _Block | None = None

    def read(self, line: str) -> None:
        if self._code and line != ".fi":
            if not line.startswith(".ft"):
                self.blocks[-1].lines.append(_unescaped(line))
            return
        if not line.startswith("."):
            self._text(line)
            return
        request, _, rest = line[1:].partition(" ")
        self._request(request, rest)

    def _request(self, request: str, rest: str) -> None:
        match request:
            case "SH" | "SS":
                title = _unescaped(rest.strip('"'))
                marks = "##" if request == "SH" else "###"
                self._add("heading", [marks, title.capitalize() if request == "SH" else title])
            case "sp":
                self._broken = True
            case "nf":
                self._add("code")
                self._code = True
            case "fi":
                self._code = False
                self._broken = True
            case "INDENT":
                self._enter(float(rest.split(maxsplit=1)[0]))
            case "UNINDENT":
                self._leave()
            case "IP":
                self._indents[-1] = self._indents[-2] if len(self._indents) > 1 else 0
                self._add("item")
                self._indents[-1] += 2

    def _add(self, kind: Literal["heading", "text", "item", "code"], lines: list[str] = []) -> None:  # noqa: B006 - copied
        self.blocks.append(_Block(kind, self._indents[-1], list(lines)))
        self._broken = kind == "heading"
        self._joins = None

    def _text(self, line: str) -> None:
        last = self.blocks[-1] if self.blocks else None
        if self._joins is not None and self._joins is last:
            # The definition stands beside its term.
            self._joins.lines[-1] += ":"
            self._joins, self._broken = None, False
        if last is None or self._broken or last.kind == "code":
            self._add("text")
        self.blocks[-1].lines.append(_inline(line))

    def _enter(self, width: float) -> None:
        last = self.blocks[-1] if self.blocks else None
        indent = self._indents[-1]
        if width and last is not None and last.kind == "text" and last.indent == indent:
            last.kind = "item"
            self._joins = last
            indent += 2
        self._indents.append(indent)

    def _leave(self) -> None:
        if len(self._indents) > 1:
            self._indents.pop()
        self._broken = True
        self._joins = None


def _inline(line: str) -> str:
    """A line with its fonts: code where a bold word is one."""
    pieces = _FONT.split(line)
    text = _unescaped(pieces[0])
    for font, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        plain = _unescaped(piece)
        if font == "B" and plain.strip():
            mark = "`" if _CODE.fullmatch(plain) and "`" not in plain else "**"
            text += f"{mark}{plain}{mark}"
        else:
            text += plain
    return text


def _unescaped(text: str) -> str:
    def character(found: re.Match[str]) -> str:
        named = found[1] or found[2]
        return _NAMED.get(named, "") if named else _SINGLE.get(found[3] or "", "")

    return _ESCAPE.sub(character, text)


_ROOTS: Final = ("/usr/local/share/man", "/usr/share/man")
_MDOC = re.compile(rb"^\.Dd\b", re.MULTILINE)
_ALIAS = re.compile(rb"\A(?:[.'](?:\\\"| *$).*\n)*\.so +(\S+)")
_MOST_ALIASES: Final = 5
_HEADING = re.compile(r"^(?=#+ )", re.MULTILINE)
_EDGES = re.compile(r"\A\S+\(\d\w*\) - .*\n|\n.*\w - .+\Z")
_TERMINAL_EDGES = re.compile(r"\A[^\n]*\n|\n[^\n]*\Z")
"""The first and last line of what mandoc writes: the name of the page, the system and its date."""


@dataclass(frozen=True, slots=True)
class _Renderer:
    """A program, with its arguments, that renders one form of pages.

    Attributes:
        argv: what is run, before the file.
        markdown: whether it writes Markdown; otherwise text as for a terminal.
    """

    argv: tuple[str, ...]
    markdown: bool = True

    def page(self, caller: Caller, command: str, version: str, file: Path) -> Page | None:
        """The page of a file; None if it cannot be rendered."""
        said = caller.run([*self.argv, str(file)])
        text = plain(said.text)
        if said.code != 0 or not said.whole or not text.strip():
            return None
        if not self.markdown:
            return page_of_help(command, version, _TERMINAL_EDGES.sub("", text))
        # The title of a page is its command.
        exact = unescape(text).replace("\N{NO-BREAK SPACE}", " ")  # mandoc writes `-&#45;all`
        return Page(command, version, _HEADING.sub("#", _EDGES.sub("", exact)))


def pages_of_man(commands: Sequence[str], variables: Mapping[str, str], *, calls: int) -> Corpus:
    """Pages of the man pages of commands and their subcommands.

    Args:
        commands: names of pages: `git` has `git-add` below it.
        variables: of the environment.
        calls: of commands, at most.

    Raises:
        ConfigurationError: neither renderer is installed, or a command has no page.
    """
    renderers = _renderers(search_path(variables))
    if not any(renderers.values()):
        raise ConfigurationError(
            "neither mandoc nor pandoc is installed", hint="install one, or use --from help"
        )
    pages: list[Page] = []
    warnings: list[str] = []
    with tempfile.TemporaryDirectory(prefix="rag-assets-man-") as home:
        caller = Caller(Path(home), variables, calls=calls)
        for command in commands:
            found = _man_files(command.replace(" ", "-"), variables)
            if not found:
                raise ConfigurationError(
                    f"{command} has no man page", hint="use --from help, or set MANPATH"
                )
            program = executable(command.split()[0], variables)
            try:
                version = version_of(caller, program)
                for title, file in found:
                    source = _source(file)
                    (Path(home) / "page").write_bytes(source)
                    form = "mdoc" if _MDOC.search(source) else "man"
                    renderer = renderers[form]
                    name = title.replace("-", " ")
                    page = None
                    if renderer is not None:
                        page = renderer.page(caller, name, version, Path(home) / "page")
                    if page is None:
                        warnings.append(f"{name}: {_why(form, renderer)}")
                    else:
                        pages.append(page)
            except TooManyCalls:
                warnings.append(f"{command}: more than {calls:,} calls; the rest is left out")
                break
    return Corpus(tuple(pages), tuple(warnings))


def _renderers(path: str) -> dict[str, _Renderer | None]:
    """Who renders each form of pages: Markdown rather than text."""
    mandoc, pandoc = (shutil.which(name, path=path) for name in ("mandoc", "pandoc"))
    text = _Renderer((mandoc, "-T", "utf8"), markdown=False) if mandoc else None
    markdown = ("-f", "man", "-t", "gfm", "--wrap=none", "--quiet", "--sandbox")
    return {
        "mdoc": _Renderer((mandoc, "-T", "markdown")) if mandoc else None,
        "man": _Renderer((pandoc, *markdown)) if pandoc else text,
    }


def _why(form: str, renderer: _Renderer | None) -> str:
    if renderer is None:
        return f"it is written in {form}, which needs mandoc; it is left out"
    return f"{Path(renderer.argv[0]).name} cannot render its page; it is left out"


def _man_files(name: str, variables: Mapping[str, str]) -> list[tuple[str, Path]]:
    """The pages of a command and of those below it, in section 1."""
    written = map(Path, variables.get("MANPATH", "").split(os.pathsep))
    roots = [folder for folder in written if folder.is_absolute()]
    found: dict[str, Path] = {}
    for root in roots or [Path(one) for one in _ROOTS]:
        for file in sorted((root / "man1").glob(f"{name}*.1*")):
            title = file.name.partition(".1")[0]
            if title == name or title.startswith(f"{name}-"):
                found.setdefault(title, file)
    return sorted(found.items())


def _source(file: Path) -> bytes:
    """The source of a page, of another one that it stands for, too."""
    root = file.parent.parent
    source = _unpacked(file)
    for _ in range(_MOST_ALIASES):
        alias = _ALIAS.match(source)
        if alias is None:
            break
        target = root / os.fsdecode(alias[1])
        packed = target.with_name(f"{target.name}.gz")
        there = next((one for one in (target, packed) if one.is_file()), None)
        if there is None or not there.resolve().is_relative_to(root.resolve()):
            break
        source = _unpacked(there)
    return source


def _unpacked(file: Path) -> bytes:
    with file.open("rb") as source:
        if file.suffix != ".gz":
            return source.read(MAX_BYTES)
        with gzip.open(source) as unpacked:
            return unpacked.read(MAX_BYTES)
