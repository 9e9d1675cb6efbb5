"""The plain values of tenants.yaml, parsed once for each content.

A parser that keeps comments takes 2 ms per tenant; a C parser takes a third of that. With a
thousand tenants, each command and each fork of a sync of all tenants would spend seconds on an
unchanged file. So the parsed values are cached by the hash of the file's bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from rag_assets.common.private_files import write_atomically

_FORMAT = "1"
"""Version of the cached values; increased when the same bytes yield other plain values."""


class ParsedFile:
    """Caches the plain values of the content that was parsed last.

    Args:
        path: the cache file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, content: bytes, parse: Callable[[bytes], Any]) -> Any:
        """Return the plain values of a file.

        Args:
            content: the bytes of the file.
            parse: returns the plain values on a cache miss; its exceptions are passed on, and not
                cached.
        """
        digest = hashlib.sha256(_FORMAT.encode() + content).hexdigest()
        kept = self._read_cache()
        if kept.get("sha256") == digest:
            return kept["values"]
        values = parse(content)
        with suppress(OSError):  # A full disk must not prevent searches.
            write_atomically(self._path, json.dumps({"sha256": digest, "values": values}))
        return values

    def _read_cache(self) -> dict[str, Any]:
        try:
            kept = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        return kept if isinstance(kept, dict) and "values" in kept else {}
