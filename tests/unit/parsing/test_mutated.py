"""Whatever is altered in a document, it is read or refused: no parser fails in another way."""

from __future__ import annotations

import io
import random
import zipfile
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

from rag_assets.errors import DocumentRejected
from rag_assets.parsing.media_types import media_type_of
from rag_assets.parsing.parse import parse
from tests.unit.parsing.office import with_part

HANDBOOK = Path(__file__).parents[3] / "examples" / "handbook"
ARCHIVES = [path for kind in ("docx", "pptx", "xlsx") for path in HANDBOOK.rglob(f"*.{kind}")]
TEXTS = [path for kind in ("html", "eml", "csv") for path in HANDBOOK.rglob(f"*.{kind}")]


def mutated(data: bytes, chance: random.Random) -> bytes:
    """A copy with a few bytes lost, doubled, moved or put in."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at, other = chance.randrange(len(changed)), chance.randrange(len(changed))
        length = chance.randint(1, 60)
        match chance.randrange(4):
            case 0:
                del changed[at : at + min(length, 20)]
            case 1:
                changed[at:at] = bytes(chance.choices(b'0123456789"<>/-&;', k=3))
            case 2:
                changed[at:at] = changed[other : other + length]
            case _:
                changed[at] = chance.randrange(256)
    return bytes(changed) or b"x"


@pytest.mark.parametrize("path", ARCHIVES, ids=[path.suffix for path in ARCHIVES])
def test_altered_parts(path: Path) -> None:
    whole = path.read_bytes()
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        parts = [name for name in archive.namelist() if name.endswith((".xml", ".rels"))]
    chance = random.Random(20260301)
    for _ in range(60):
        data = with_part(whole, chance.choice(parts), lambda old: mutated(old, chance))
        with suppress(DocumentRejected):
            assert parse(data, media_type_of(path.name)).text


@pytest.mark.parametrize("path", TEXTS, ids=[path.suffix for path in TEXTS])
def test_altered_texts(path: Path) -> None:
    whole = path.read_bytes()
    chance = random.Random(20260302)
    for _ in range(150):
        with suppress(DocumentRejected):
            parsed = parse(mutated(whole, chance), media_type_of(path.name))
            assert all(a.end <= b.start for a, b in pairwise(parsed.blocks))
