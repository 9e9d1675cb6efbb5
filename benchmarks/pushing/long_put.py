"""Put contents of a large file, each cut off by a kill of the service and put again."""

from __future__ import annotations

import hashlib
import http.client
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from benchmarks.pushing.site import Workspace

FILE, PAGE = "long", "with-a-long-file"
_LINES = 10_000
_ARRIVES_SECONDS = 0.5


@dataclass
class LongPuts:
    """A file that is put while the service is killed.

    Attributes:
        workspace: contains the file.
        stored: for each kill, the hash stored after it and the hash of the last complete put.
    """

    workspace: Workspace
    stored: list[tuple[str | None, str]] = field(default_factory=list)

    def prepare(self) -> None:
        """Put the file and its first content completely."""
        self.workspace.put_page(PAGE)
        self.workspace.put("file", FILE, {"page_uuid": PAGE, "name": "long.md"})
        self.workspace.put_content(FILE, build_content(0))

    def interrupt_put(self) -> None:
        """Send half of a new content, kill the service, record the stored hash, put all of it."""
        number = len(self.stored)
        content = build_content(number + 1)
        connection = self._send_part(content[: len(content) // 2], total_bytes=len(content))
        try:
            time.sleep(_ARRIVES_SECONDS)
            self.workspace.service.kill()
        finally:
            connection.close()
        self.workspace.service.start()
        stored_hash = self.workspace.read_record_sha256("file", FILE)
        self.stored.append((stored_hash, compute_hash(build_content(number))))
        self.workspace.put_content(FILE, content)

    def find_faults(self) -> list[str]:
        """Return the conditions that are violated once everything is indexed."""
        last = len(self.stored)
        conditions = {
            "half of a file was stored as its content": all(a == b for a, b in self.stored),
            "a file that was put again is not found": self.workspace.is_found(build_mark(last)),
            "an earlier content of a file is found": not any(
                self.workspace.is_found(build_mark(number)) for number in range(last)
            ),
        }
        return [fault for fault, holds in conditions.items() if not holds]

    def _send_part(self, part: bytes, *, total_bytes: int) -> http.client.HTTPConnection:
        """Return a connection that has sent the first part of a content."""
        address = urlsplit(self.workspace.service.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port)
        connection.putrequest("PUT", f"/rag/records/file/{FILE}/content")
        connection.putheader("Authorization", f"Bearer {self.workspace.token}")
        connection.putheader("Content-Length", str(total_bytes))
        connection.endheaders()
        connection.send(part)
        return connection


def build_content(number: int) -> bytes:
    """Return about 600 KB of Markdown; its last line has a mark."""
    lines = (f"Line {line} of content {number} has a few more words." for line in range(_LINES))
    return "\n".join([*lines, "", f"The end of it is {build_mark(number)}.", ""]).encode()


def build_mark(number: int) -> str:
    """Return the word that only this content contains."""
    return f"long{number}x"


def compute_hash(content: bytes) -> str:
    """Return the hash that identifies a content."""
    return hashlib.sha256(content).hexdigest()
