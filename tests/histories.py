"""Random histories of a small repository in several languages: edits, renames and moves.

A state maps paths to file contents. Each step changes the previous state, or returns to an earlier
one, as a checkout of a branch does.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

State: TypeAlias = dict[str, bytes]
"""What the files hold, by path."""

_WORD: Final = re.compile(rb"[A-Za-z_]\w{3,}")
_NAMES: Final = (b"Invoice", b"Bill", b"Base", b"Rate", b"store", b"total", b"format", b"Model")
_FOLDERS: Final = ("app/Models", "app/Services", "backend/billing", "web/src/lib", "docs", "moved")
_MOST_FILES: Final = 60


@dataclass
class History:
    """A sequence of repository states.

    Attributes:
        files: the first state.
        seed: of the random choices.
        unreadable: whether files may become binary or empty.
        did: descriptions of the last step, for debugging.
    """

    files: State
    seed: int
    unreadable: bool = True
    did: list[str] = field(default_factory=list)
    _branches: list[State] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)

    def states(self, steps: int) -> Iterator[State]:
        """Yield the states after each of so many steps."""
        state = dict(self.files)
        self._branches.append(state)
        for _ in range(steps):
            self.did.clear()
            for _ in range(self._chance.randint(1, 4)):
                state = self._step(dict(state))
            yield state

    def _step(self, state: State) -> State:
        step = self._chance.choice(_STEPS)
        self.did.append(step.__name__.strip("_"))
        changed = {path: text if text.strip() else b"" for path, text in step(self, state).items()}
        if not self.unreadable:
            changed = {path: text for path, text in changed.items() if text and b"\0" not in text}
        # A path cannot be both a file and a folder.
        folders = {str(up) for path in changed for up in Path(path).parents}
        return {path: text for path, text in changed.items() if path not in folders}

    def _any(self, state: State) -> str:
        return self._chance.choice(sorted(state))

    def _edit(self, state: State) -> State:
        """Change lines of a file at random; it may become invalid."""
        path = self._any(state)
        lines = state[path].split(b"\n")
        at, to = (self._chance.randrange(len(lines)) for _ in range(2))
        match self._chance.randrange(5):
            case 0:
                del lines[at]
            case 1:
                lines.insert(to, lines[at])
            case 2:
                lines[at], lines[to] = lines[to], lines[at]
            case 3:
                lines.insert(at, b"")
            case _:
                lines[at] = lines[at][: self._chance.randrange(len(lines[at]) + 1)]
        return state | {path: b"\n".join(lines)}

    def _rename_word(self, state: State) -> State:
        """Rename a word, in one file or in all files."""
        words = sorted(set(_WORD.findall(state[self._any(state)])))
        if not words:
            return state
        old, new = self._chance.choice(words), self._chance.choice([*_NAMES, b"Renamed"])
        where = state if self._chance.random() < 0.5 else {self._any(state): b""}
        return state | {path: re.sub(rb"\b%s\b" % old, new, state[path]) for path in where}

    def _restore(self, state: State) -> State:
        """Restore the first content of a file."""
        path = self._chance.choice(sorted(self.files))
        return state | {path: self.files[path]}

    def _delete(self, state: State) -> State:
        if len(state) > 5:
            del state[self._any(state)]
        return state

    def _move(self, state: State) -> State:
        path = self._any(state)
        folder = self._chance.choice(_FOLDERS)
        return _renamed(state, path, f"{folder}/{path.rpartition('/')[2]}")

    def _move_folder(self, state: State) -> State:
        """Move all files of a folder."""
        folder = self._any(state).rpartition("/")[0]
        if not folder:
            return state
        target = self._chance.choice([f"{folder}2", f"src/{folder}", folder.partition("/")[2]])
        inner = [path for path in state if path.startswith(f"{folder}/")]
        for path in inner:
            state = _renamed(state, path, f"{target}{path.removeprefix(folder)}".lstrip("/"))
        return state

    def _rename(self, state: State) -> State:
        path = self._any(state)
        folder, _, name = path.rpartition("/")
        stem, dot, suffix = name.rpartition(".")
        return _renamed(state, path, f"{folder}/{stem}_{len(state)}{dot}{suffix}".lstrip("/"))

    def _rename_case(self, state: State) -> State:
        """Change only the case of a file's name."""
        path = self._any(state)
        folder, slash, name = path.rpartition("/")
        other = name.swapcase() if self._chance.random() < 0.3 else name[0].swapcase() + name[1:]
        return _renamed(state, path, f"{folder}{slash}{other}")

    def _copy(self, state: State) -> State:
        path = self._any(state)
        if len(state) >= _MOST_FILES:
            return state
        copy = f"copies/{self._chance.randrange(4)}/{path.rpartition('/')[2]}"
        return state | {copy: state[path]}

    def _swap(self, state: State) -> State:
        """Swap the contents of two files."""
        one, other = self._any(state), self._any(state)
        return state | {one: state[other], other: state[one]}

    def _line_ends(self, state: State) -> State:
        path = self._any(state)
        text = state[path].replace(b"\r\n", b"\n")
        return state | {path: text if text != state[path] else text.replace(b"\n", b"\r\n")}

    def _empty(self, state: State) -> State:
        return state | {self._any(state): self._chance.choice([b"", b"<?php\n", b"\0\1\2"])}

    def _attributes(self, state: State) -> State:
        """Change which files .gitattributes marks as generated."""
        suffix = self._chance.choice(["*.ts", "*.php", "docs/**", "*.nothing"])
        return state | {".gitattributes": f"{suffix} linguist-generated\n".encode()}

    def _framework(self, state: State) -> State:
        """Add or remove the dependency on a framework."""
        required = self._chance.choice(['{"require": {"laravel/framework": "^12"}}', "{}"])
        return state | {"composer.json": required.encode()}

    def _branch(self, state: State) -> State:
        self._branches.append(dict(state))
        return state

    def _check_out(self, state: State) -> State:
        return dict(self._chance.choice(self._branches))


def _renamed(state: State, path: str, target: str) -> State:
    text = state.pop(path)
    return state | {target: text}


_STEPS: Final[tuple[Callable[[History, State], State], ...]] = (
    *(History._edit,) * 5,
    *(History._rename_word,) * 3,
    History._restore,
    History._delete,
    History._move,
    History._move_folder,
    History._rename,
    History._rename_case,
    History._copy,
    History._swap,
    History._line_ends,
    History._empty,
    History._attributes,
    History._framework,
    History._branch,
    *(History._check_out,) * 2,
)


def put(root: Path, state: State) -> None:
    """Write a state to a folder; renamed files are moved."""
    present = {
        str(path.relative_to(root)): path
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(root).parts
    }
    gone = {path.read_bytes(): path for name, path in present.items() if name not in state}
    moved: dict[Path, bytes] = {}
    for name, text in state.items():
        if name not in present and text in gone:
            moved[gone.pop(text)] = text
    for name in present.keys() - state.keys():
        if present[name] not in moved:
            present[name].unlink()
    kept = {
        text: path.rename(root / f"~{number}") for number, (path, text) in enumerate(moved.items())
    }
    for folder in sorted((p for p in root.rglob("*") if p.is_dir()), reverse=True):
        if ".git" not in folder.relative_to(root).parts and not any(folder.iterdir()):
            folder.rmdir()
    for name, text in state.items():
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if name not in present and text in kept:
            kept.pop(text).rename(target)
        elif not target.exists() or target.read_bytes() != text:
            target.write_bytes(text)
