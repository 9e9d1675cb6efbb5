"""Documentation pages: Markdown files with a command and its version in their front matter."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import dedent
from typing import Final

from rag_assets.common.private_files import write_atomically
from rag_assets.systems.agent_docs.command_runner import CommandRunner, read_version

_FRONT_MATTER = "---\ngenerator: rag-assets agent docs\ncommand: {}\nversion: {}\n---\n"
_FRONT_MATTER_BYTES: Final = 1_000
_READ_FRONT_MATTER = re.compile(rf"\A{_FRONT_MATTER.format('(.*)', '(.*)')}")
_PAGE_EDGE = re.compile(r"^[\w-]+\(\d?\) .*\)\s*$|^ {10,}[\w-]+\(\d?\)$", re.MULTILINE)
"""The first and last line of a man page."""
_MIN_REPEATED: Final = 400
"""Sections longer than this are not repeated on a second page."""
_MAX_HEADING: Final = 80
"""Maximum characters of a heading; a longer line is not a heading."""
_BACKTICKS = re.compile(r"`{3,}")


@dataclass(frozen=True, slots=True)
class Page:
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
        """Return the name of the page's file."""
        return "-".join(re.sub(r"[^\w.+-]", "_", word) for word in self.command.split()) + ".md"

    def render(self) -> str:
        """Return the content of the file; the same command version gives the same content."""
        front_matter = _FRONT_MATTER.format(self.command, self.version)
        return f"{front_matter}\n# {self.command}\n\n{self.text.strip()}\n"


@dataclass(frozen=True, slots=True)
class Corpus:
    """Pages in the order of their commands, and warnings about omitted parts."""

    pages: tuple[Page, ...]
    warnings: tuple[str, ...]


def page_from_help(command: str, version: str, text: str, summary: str = "") -> Page:
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
    return Page(command, version, "\n\n".join(parts))


def drop_empty_name_section(text: str) -> str:
    """Remove the section "Name" of a man page if it contains only the name."""
    return re.sub(r"\A## Name\n\n\S+ -\s*(?=## )", "", text)


def drop_repeated_sections(page: Page, owners: dict[str, str]) -> Page:
    """Replace long sections that an earlier page contains by a reference to that page.

    Args:
        owners: the command of each known section, by its text; this page's sections are added.
    """
    first, *sections = re.split(r"^(?=## )", page.text, flags=re.MULTILINE)
    kept = [first]
    for section in sections:
        body = section.strip()
        is_long = len(body) > _MIN_REPEATED
        owner = owners.setdefault(body, page.command) if is_long else page.command
        heading = section.partition("\n")[0]
        reference = f"{heading}\n\nThe same as of `{owner}`.\n\n"
        kept.append(section if owner == page.command else reference)
    return replace(page, text="".join(kept))


def write_pages(
    pages: Iterable[Page], folder: Path, *, replacing: Sequence[str] = ()
) -> tuple[int, int]:
    """Write pages, and delete outdated pages.

    Args:
        folder: the folder of the pages; created if it is missing.
        replacing: commands of which `pages` contains all pages; any other page of these commands is
            deleted.

    Returns:
        the number of written files and of deleted files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    by_name = {page.file_name: page for page in pages}
    commands = [" ".join(command.split()) for command in replacing]
    written = deleted = 0
    for name, page in by_name.items():
        path, text = folder / name, page.render()
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            draft = folder / f".{name}.new"
            # An existing draft may be a link, and is never written to.
            draft.unlink(missing_ok=True)
            with draft.open("x", encoding="utf-8") as file:
                file.write(text)
            draft.replace(path)
            written += 1
    for path in sorted(folder.glob("*.md")):
        facts = read_front_matter(path) if path.name not in by_name else None
        if facts and any(f"{facts[0]} ".startswith(f"{command} ") for command in commands):
            path.unlink()
            deleted += 1
    return written, deleted


def read_front_matter(path: Path) -> tuple[str, str] | None:
    """Return the command and version of a page; None for files that are not pages of ours."""
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
    """Return the heading in a line: not indented, and ending in a colon or in capitals."""
    if not line or line[0].isspace() or len(line) > _MAX_HEADING:
        return None
    bare = line.rstrip()
    if bare.endswith(":") and not bare.lower().startswith("usage"):
        return bare[:-1]
    return bare.capitalize() if re.fullmatch(r"[A-Z][A-Z -]+", bare) else None


def record_programs(programs: Mapping[str, str]) -> None:
    """Remember the programs of pages, as name and file, for find_outdated."""
    recorded = {**_read_programs(), **programs}
    write_atomically(_programs_file(), json.dumps(recorded, indent=1, sort_keys=True))


def find_outdated(files: Iterable[Path]) -> list[str]:
    """Return a line for each recorded program whose version differs from that of its pages.

    Args:
        files: documentation files; those that are not pages of ours are ignored.
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
        programs = json.loads(_programs_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    is_mapping = isinstance(programs, dict)
    return {str(name): str(file) for name, file in programs.items()} if is_mapping else {}


def _programs_file() -> Path:
    configured = os.environ.get("XDG_STATE_HOME")
    folder = Path(configured) if configured else Path.home() / ".local" / "state"
    return folder / "rag-assets" / "agent-docs.json"
