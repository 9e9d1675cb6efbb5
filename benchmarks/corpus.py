"""Generate the benchmark's corpus, Markdown files made from a seed, and the edits of its phases.

    python -m benchmarks.corpus FOLDER --files 2000             writes it, about 8 chunks a file
    python -m benchmarks.corpus FOLDER --change edit --round 1  edits, renames or deletes 1 %

Every file is made from the seed and its own number, so 20,000 files begin with the same 2,000,
and the work grows in proportion. Changes take evenly spread files, and no two kinds of change take
the same file; a further round takes the same files again, with other words. Only the standard
library is used, so the module runs in any environment.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from benchmarks import prose
from benchmarks.measure import create_parser

FILES = 2_000
MAX_TOKENS = 256
"""Maximum size of a chunk, in cl100k_base tokens, for every compared chunker."""
OVERLAP = 32

_SEED = 4
_STEP = 100  # 1 %
_FOLDER_FILES = 50
_EDITED, _RENAMED, _DELETED = 17, 42, 73  # which of each hundred
_MOVED = "moved-"


def write_corpus(folder: Path, files: int = FILES) -> list[Path]:
    """Write the corpus into a folder that is new or empty; return the paths in order."""
    return [_write_file(folder, number) for number in range(files)]


def edit_files(paths: Sequence[Path], round_number: int = 1) -> list[Path]:
    """Replace a paragraph in the middle of 1 % of the files.

    Args:
        paths: all files, as write_corpus returned them.
        round_number: another number gives other words.

    Returns:
        the edited files.
    """
    edited = list(paths[_EDITED::_STEP])
    for path in edited:
        rng = random.Random(f"{_SEED}/edit/{round_number}/{path.name}")
        parts = path.read_text().split("\n\n")
        plain = [n for n, part in enumerate(parts) if part[0].isalpha()]
        parts[plain[len(plain) // 2]] = prose.draw_paragraph(rng)
        path.write_text("\n\n".join(parts))
    return edited


def rename_files(paths: Sequence[Path]) -> list[Path]:
    """Rename 1 % of the files, or restore their first names; return the new paths."""
    renamed = []
    for path in paths[_RENAMED::_STEP]:
        moved = path.with_name(_MOVED + path.name)
        source, target = (path, moved) if path.exists() else (moved, path)
        renamed.append(source.rename(target))
    return renamed


def delete_files(paths: Sequence[Path]) -> list[Path]:
    """Delete 1 % of the files; return their paths."""
    deleted = list(paths[_DELETED::_STEP])
    for path in deleted:
        path.unlink()
    return deleted


def restore_files(folder: Path, paths: Sequence[Path]) -> None:
    """Write every file again in its first version, and remove renamed files."""
    for path in folder.rglob(f"{_MOVED}*.md"):
        path.unlink()
    write_corpus(folder, len(paths))


def _write_file(folder: Path, number: int) -> Path:
    rng = random.Random(f"{_SEED}/{number}")
    name = f"{prose.draw_slug(rng)}-{number:05d}.md"
    path = folder / f"part-{number // _FOLDER_FILES:03d}" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    # Most documents are short, a few are long.
    sections = min(30, 1 + int(rng.expovariate(1 / 4.3)))
    path.write_text(prose.draw_document(rng, sections))
    return path


def main() -> None:
    """Write the corpus, or change an existing one."""
    parser = create_parser(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--change", choices=("edit", "rename", "delete"))
    parser.add_argument("--round", type=int, default=1, help="another round edits with other words")
    arguments = parser.parse_args()
    if arguments.change is None:
        paths = write_corpus(arguments.folder, arguments.files)
        size = sum(path.stat().st_size for path in paths)
        print(f"{len(paths)} files, {size / 1e6:.1f} MB")
        return
    paths = sorted(arguments.folder.rglob("*.md"), key=lambda path: path.stem[-5:])
    changes = {
        "edit": lambda: edit_files(paths, arguments.round),
        "rename": lambda: rename_files(paths),
        "delete": lambda: delete_files(paths),
    }
    print(f"{arguments.change}: {len(changes[arguments.change]())} files")


if __name__ == "__main__":
    main()
