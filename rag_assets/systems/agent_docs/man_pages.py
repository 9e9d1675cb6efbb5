"""Makes pages of the man pages of commands, by mandoc or pandoc.

Pages are written in mdoc(7) or man(7). mandoc writes Markdown of mdoc alone; of man it writes text.
pandoc writes Markdown of man alone.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Final

from rag_assets.common.errors import ConfigurationError
from rag_assets.systems.agent_docs.calls import MAX_BYTES, Caller, TooManyCalls, search_path
from rag_assets.systems.agent_docs.help_pages import Corpus, executable, version_of
from rag_assets.systems.agent_docs.help_text import plain
from rag_assets.systems.agent_docs.pages import Page, page_of_help

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
