"""The documents of the trial: some stay as they are, some are edited, some are deleted."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import prose

STEADY = "files/steady-"
"""With which the names of documents begin that stay as they are."""
_QUESTION_WORDS = 8
_WAIT_SECONDS = 180.0
_PAUSE_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit of one document.

    Attributes:
        saved: when, in seconds since the epoch.
        found: when a search first found it; None if none did.
    """

    uri: str
    edition: int
    saved: float
    found: float | None


@dataclass(frozen=True, slots=True)
class Deletion:
    """A deletion of one document.

    Attributes:
        gone: when a search no longer found it; None if each did.
    """

    uri: str
    deleted: float
    gone: float | None


def write_documents(folder: Path, *, steady: int, edited: int, doomed: int) -> list[str]:
    """Write all documents; returns questions in words of those that stay.

    Args:
        folder: of the tenant's source.
        steady: how many stay as they are.
        edited: how many are edited; they are short, each is one passage in every build.
        doomed: how many may be deleted; likewise.
    """
    rng = random.Random(16)
    folder.mkdir(parents=True, exist_ok=True)
    questions = []
    for number in range(steady):
        text = prose.document(rng, 3)
        (folder / f"steady-{number}.md").write_text(text)
        words = text.split()
        begin = rng.randrange(max(1, len(words) - _QUESTION_WORDS))
        questions.append(" ".join(words[begin : begin + _QUESTION_WORDS]))
    for number in range(edited):
        (folder / f"edited-{number}.md").write_text(_passage(f"edited-{number}.md", 0, rng))
    for number in range(doomed):
        (folder / f"doomed-{number}.md").write_text(_passage(f"doomed-{number}.md", 0, rng))
    return questions


def _passage(name: str, edition: int, rng: random.Random) -> str:
    """A document of one short passage, found by its mark and by the words of others."""
    sentence = " ".join(prose.document(rng, 1).split()[10:22])
    return f"# {name}\n\n{mark(name, edition)}: edition {edition} of {name}. {sentence}\n"


def mark(name: str, edition: int) -> str:
    """A word that one edition of one document has alone."""
    return f"zanzibar{name.removesuffix('.md').replace('-', '')}x{edition}"


class Editor:
    """Edits and deletes documents, one after the other, each awaited.

    Args:
        folder: of the tenant's source, named "files".
        edited, doomed: how many documents there are.
        finds: whether a search for a word finds it in a document now.
        follow: brings the index up to date; by default somebody else does.
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
        draft.write_text(_passage(name, edition, self._rng))
        saved = time.time()
        draft.replace(self._folder / name)
        self._follow()
        found = self._awaited(lambda: self._finds(mark(name, edition)))
        self.edits.append(Edit(f"files/{name}", edition, saved, found))

    def delete(self) -> None:
        """Delete a document, and wait until it is not found any more."""
        number = len(self.deletions)
        if number == self._doomed:
            return
        name = f"doomed-{number}.md"
        deleted = time.time()
        (self._folder / name).unlink()
        self._follow()
        gone = self._awaited(lambda: not self._finds(mark(name, 0)))
        self.deletions.append(Deletion(f"files/{name}", deleted, gone))

    def _awaited(self, condition: Callable[[], bool]) -> float | None:
        deadline = time.monotonic() + _WAIT_SECONDS
        while not condition():
            if time.monotonic() > deadline:
                return None
            time.sleep(_PAUSE_SECONDS)
        return time.time()
