"""The documents of the trial: some stay unchanged, some are edited, some are deleted."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import prose

STEADY = "files/steady-"
"""Prefix of the URIs of documents that stay unchanged."""
_QUESTION_WORDS = 8
_WAIT_SECONDS = 180.0
_PAUSE_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit of one document.

    Attributes:
        saved_at: time of the save, in seconds since the epoch.
        found_at: time when a search first found it; None if none did.
    """

    uri: str
    edition: int
    saved_at: float
    found_at: float | None


@dataclass(frozen=True, slots=True)
class Deletion:
    """A deletion of one document.

    Attributes:
        deleted_at: time of the deletion, in seconds since the epoch.
        gone_at: time when a search no longer found it; None if every search did.
    """

    uri: str
    deleted_at: float
    gone_at: float | None


def write_documents(folder: Path, *, steady: int, edited: int, doomed: int) -> list[str]:
    """Write all documents; return questions with words of the steady documents.

    Args:
        folder: folder of the tenant's source.
        steady: number of documents that stay unchanged.
        edited: number of documents to edit; they are short, one passage in every build.
        doomed: number of documents that may be deleted; also one passage each.
    """
    rng = random.Random(16)
    folder.mkdir(parents=True, exist_ok=True)
    questions = []
    for number in range(steady):
        text = prose.draw_document(rng, 3)
        (folder / f"steady-{number}.md").write_text(text)
        words = text.split()
        begin = rng.randrange(max(1, len(words) - _QUESTION_WORDS))
        questions.append(" ".join(words[begin : begin + _QUESTION_WORDS]))
    for number in range(edited):
        (folder / f"edited-{number}.md").write_text(_build_passage(f"edited-{number}.md", 0, rng))
    for number in range(doomed):
        (folder / f"doomed-{number}.md").write_text(_build_passage(f"doomed-{number}.md", 0, rng))
    return questions


def _build_passage(name: str, edition: int, rng: random.Random) -> str:
    """Return a document of one short passage with a mark and words that other documents use."""
    sentence = " ".join(prose.draw_document(rng, 1).split()[10:22])
    return f"# {name}\n\n{build_mark(name, edition)}: edition {edition} of {name}. {sentence}\n"


def build_mark(name: str, edition: int) -> str:
    """Return the word that only this edition of this document contains."""
    return f"zanzibar{name.removesuffix('.md').replace('-', '')}x{edition}"


class Editor:
    """Edits and deletes documents one at a time, and waits until each change is searchable.

    Args:
        folder: folder of the tenant's source, which is named "files".
        edited, doomed: number of documents of each kind.
        finds: returns whether a search for a word finds it in a document now.
        follow: updates the index; by default another process does.
    """

    def __init__(
        self,
        folder: Path,
        *,
        edited: int,
        doomed: int,
        finds: Callable[[str], bool],
        follow: Callable[[], object] = lambda: None,
    ) -> None:
        self._folder, self._edited, self._doomed = folder, edited, doomed
        self._finds, self._follow = finds, follow
        self._rng = random.Random(17)
        self.edits: list[Edit] = []
        self.deletions: list[Deletion] = []

    def edit(self) -> None:
        """Save the next edition of a document, and wait until it is found."""
        edition = len(self.edits) + 1
        name = f"edited-{edition % self._edited}.md"
        draft = self._folder / f".{name}.draft"
        draft.write_text(_build_passage(name, edition, self._rng))
        saved_at = time.time()
        draft.replace(self._folder / name)
        self._follow()
        found_at = self._wait_for(lambda: self._finds(build_mark(name, edition)))
        self.edits.append(Edit(f"files/{name}", edition, saved_at, found_at))

    def delete(self) -> None:
        """Delete a document, and wait until it is no longer found."""
        number = len(self.deletions)
        if number == self._doomed:
            return
        name = f"doomed-{number}.md"
        deleted_at = time.time()
        (self._folder / name).unlink()
        self._follow()
        gone_at = self._wait_for(lambda: not self._finds(build_mark(name, 0)))
        self.deletions.append(Deletion(f"files/{name}", deleted_at, gone_at))

    def _wait_for(self, condition: Callable[[], bool]) -> float | None:
        deadline = time.monotonic() + _WAIT_SECONDS
        while not condition():
            if time.monotonic() > deadline:
                return None
            time.sleep(_PAUSE_SECONDS)
        return time.time()
