"""What tenants.yaml says as plain values, parsed once for each content.

A parser that keeps comments takes 2 ms a tenant, and a C one a third of that: with a thousand
tenants each command, and each fork of a sync of all, would spend seconds on a file that has not
changed since yesterday. What was parsed is kept by the hash of the file's bytes.
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
"""Raised when other plain values are made of the same bytes."""


class ParsedFile:
    """Keeps the plain values of one content, the last that was parsed.

    Args:
        path: where they are kept.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def get(self, content: bytes, parse: Callable[[bytes], Any]) -> Any:
        """The plain values of a file.

        Args:
            content: of the file.
            parse: makes plain values of it, if others were kept; whatever it raises is passed on,
                and not kept.
        """
        digest = hashlib.sha256(_FORMAT.encode() + content).hexdigest()
        kept = self._kept()
        if kept.get("sha256") == digest:
            return kept["values"]
        values = parse(content)
        with suppress(OSError):  # A full disk keeps nobody from searching.
            write_atomically(self._path, json.dumps({"sha256": digest, "values": values}))
        return values

    def _kept(self) -> dict[str, Any]:
        try:
            kept = json.loads(self._path.read_bytes())
        except (OSError, ValueError):
            return {}
        return kept if isinstance(kept, dict) and "values" in kept else {}
