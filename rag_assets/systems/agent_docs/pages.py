"""Pages of documentation: Markdown files with the command and its version at their head."""

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
from rag_assets.systems.agent_docs.calls import Caller, version_of

MARK: Final = "rag-assets agent docs"
_HEAD = re.compile(r"\A---\ngenerator: rag-assets agent docs\ncommand: (.*)\nversion: (.*)\n---\n")
_HEAD_BYTES: Final = 1_000
_PAGE_EDGE = re.compile(r"^[\w-]+\(\d?\) .*\)\s*$|^ {10,}[\w-]+\(\d?\)$", re.MULTILINE)
"""The first and last line of a man page."""
_REPEATED: Final = 400
"""Characters of a section that is not worth repeating."""
_BACKTICKS = re.compile(r"`{3,}")


@dataclass(frozen=True, slots=True)
class Page:
    """A page.

    Attributes:
        command: whose it is, with its subcommands: `git remote add`.
        version: that the command named.
        text: Markdown below the head.
    """

    command: str
    version: str
    text: str

    @property
    def name(self) -> str:
        """The name of its file."""
        return "-".join(re.sub(r"[^\w.+-]", "_", word) for word in self.command.split()) + ".md"

    def written(self) -> str:
        """The content of its file; equal for equal versions."""
        head = f"---\ngenerator: {MARK}\ncommand: {self.command}\nversion: {self.version}\n---\n"
        return f"{head}\n# {self.command}\n\n{self.text.strip()}\n"


@dataclass(frozen=True, slots=True)
class Corpus:
    """The pages of commands.

    Attributes:
        pages: in the order of the commands.
        warnings: of what was left out.
    """

    pages: tuple[Page, ...]
    warnings: tuple[str, ...]


def page_of_help(command: str, version: str, text: str, about: str = "") -> Page:
    """The page of a help text, with its sections under headings and as they stand.

    Args:
        command: whose help it is.
        version: of the command.
        text: plain.
        about: what the help of the command above says of it; some do not say it themselves.
    """
    parts = [about] if about and about.rstrip(".") not in text else []
    for heading, body in sections(_PAGE_EDGE.sub("", text)):
        if heading:
            parts.append(f"## {heading}")
        if body.strip():
            runs = [len(run) for run in _BACKTICKS.findall(body)]
            fence = "`" * (max(runs, default=2) + 1)
            lines = "\n".join(line.rstrip() for line in dedent(body).split("\n"))
            parts.append(f"{fence}text\n{lines}\n{fence}")
    return Page(command, version, "\n\n".join(parts))


def without_name(text: str) -> str:
    """The text of a man page without its section of the name alone, which the title has."""
    return re.sub(r"\A## Name\n\n\S+ -\s*(?=## )", "", text)


def without_repeated(page: Page, known: dict[str, str]) -> Page:
    """A page without long sections that another one has, word for word; it names that one.

    Args:
        page: the page.
        known: the command of each section, by its text; those of this page are added.
    """
    first, *found = re.split(r"^(?=## )", page.text, flags=re.MULTILINE)
    kept = [first]
    for section in found:
        body = section.strip()
        of = known.setdefault(body, page.command) if len(body) > _REPEATED else page.command
        heading = section.partition("\n")[0]
        kept.append(section if of == page.command else f"{heading}\n\nThe same as of `{of}`.\n\n")
    return replace(page, text="".join(kept))


def write_pages(
    pages: Iterable[Page], folder: Path, *, instead_of: Sequence[str] = ()
) -> tuple[int, int]:
    """Write pages, and delete those that are no more.

    Args:
        pages: to be written.
        folder: made where it is missing.
        instead_of: commands all of whose pages are among them: others of theirs are deleted.

    Returns:
        how many files are written or changed, and how many deleted.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {page.name: page for page in pages}
    named = [" ".join(command.split()) for command in instead_of]
    changed = deleted = 0
    for name, page in wanted.items():
        path, text = folder / name, page.written()
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            draft = folder / f".{name}.new"
            # What lies there is not written to: it may be a link.
            draft.unlink(missing_ok=True)
            with draft.open("x", encoding="utf-8") as file:
                file.write(text)
            os.replace(draft, path)  # noqa: PTH105
            changed += 1
    for path in sorted(folder.glob("*.md")):
        head = head_of(path) if path.name not in wanted else None
        if head is not None and any(f"{head[0]} ".startswith(f"{one} ") for one in named):
            path.unlink()
            deleted += 1
    return changed, deleted


def head_of(path: Path) -> tuple[str, str] | None:
    """The command and version at the head of a page of ours; None for other files."""
    try:
        with path.open("rb") as file:
            found = _HEAD.match(file.read(_HEAD_BYTES).decode("utf-8", "replace"))
    except OSError:
        return None
    return None if found is None else (found[1], found[2])


def sections(text: str) -> Iterator[tuple[str, str]]:
    """Headings and bodies of a plain help text; the first has no heading."""
    heading = ""
    lines: list[str] = []
    for line in text.split("\n"):
        if (name := _heading_of(line)) is not None:
            yield heading, "\n".join(lines).strip("\n")
            heading, lines = name, []
        else:
            lines.append(line)
    yield heading, "\n".join(lines).strip("\n")


def _heading_of(line: str) -> str | None:
    """The heading that a line is: it begins at the margin, and ends in a colon or shouts."""
    if not line or line[0].isspace() or len(line) > 80:  # noqa: PLR2004
        return None
    bare = line.rstrip()
    if bare.endswith(":") and not bare.lower().startswith("usage"):
        return bare[:-1]
    return bare.capitalize() if re.fullmatch(r"[A-Z][A-Z -]+", bare) else None


def remember(programs: Mapping[str, str]) -> None:
    """Remember programs by their names.

    Args:
        programs: the file of each.
    """
    write_atomically(_file(), json.dumps({**known(), **programs}, indent=1, sort_keys=True))


def known() -> dict[str, str]:
    """The remembered programs: the file of each, by name."""
    try:
        found = json.loads(_file().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}


def outdated(files: Iterable[Path]) -> list[str]:
    """Which remembered programs have another version than pages of theirs.

    Args:
        files: of an agent; those that are no pages of ours are left out.
    """
    versions: dict[str, str] = {}
    for head in filter(None, map(head_of, files)):
        versions.setdefault(head[0].split()[0], head[1])
    programs = {name: file for name, file in known().items() if name in versions}
    if not programs:
        return []
    lines = []
    with tempfile.TemporaryDirectory(prefix="rag-assets-help-") as home:
        caller = Caller(Path(home), os.environ)
        for name, file in sorted(programs.items()):
            try:
                installed = version_of(caller, file)
            except OSError:
                continue  # It is not installed any more: its pages are the last there are.
            if installed != versions[name]:
                lines.append(f"{name} is {installed}, its pages are of {versions[name]}")
    return lines


def _file() -> Path:
    given = os.environ.get("XDG_STATE_HOME")
    folder = Path(given) if given else Path.home() / ".local" / "state"
    return folder / "rag-assets" / "agent-docs.json"
