"""Readings of texts in any language, and what they must not contain."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from rag_assets.systems.code_memory.reading import read_code

WITH_NUL = {
    "config/app.php": ("text/x-php", '<?php\nreturn ["a\\0b" => ["c\\0" => env("KEY\\0")]];\n'),
    "route.php": (
        "text/x-php",
        '<?php\nRoute::get("/a\\0b", [C::class, "x\\0y"])->name("n\\0");\nDB::table("t\\0");\n',
    ),
    "data.json": ("text/x-json", '{"a\\u0000b": {"c": "\\u0000"}}\n'),
    "data.yaml": ("text/x-yaml", '"a\\0b":\n  "c\\0d": "e\\0"\n'),
    "data.toml": ("text/x-toml", '"a\\u0000b" = 1\n'),
    "models.py": (
        "text/x-python",
        (
            'class Bill(Model):\n    table = "a\\0b"\n    settings["a\\x00"]\n\n\ndef f():\n'
            '    cursor.execute("SELECT * FROM a\\0b")\n'
        ),
    ),
    "app.ts": (
        "text/x-typescript",
        'app.get("/a\\0b", f);\nexport const a = process.env["\\0"];\n',
    ),
    "raw.py": ("text/x-python", "def a():\n    '''b\0c'''\n    return 'd\0'\n"),
    "raw.rb": ("text/x-ruby", "def a\n  'b\0c'\nend\n"),
}


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for pair in value.items() for one in pair for text in _texts(one)]
    inner = value if isinstance(value, list | tuple) else ()
    return [text for one in inner for text in _texts(one)]


@pytest.mark.parametrize("path", WITH_NUL)
def test_a_reading_holds_no_nul_for_postgres_stores_none(path: str) -> None:
    media_type, text = WITH_NUL[path]
    reading = read_code(text, media_type)
    assert reading.units
    stated = [asdict(one) for one in (*reading.units, *reading.facts)]
    assert not [one for one in _texts(stated) if "\0" in one]
