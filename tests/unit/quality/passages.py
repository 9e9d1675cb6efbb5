"""Passages as a search finds them, for tests of judgements."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Found:
    uri: str
    text: str
    also: tuple[str, ...] = ()
    id: str = ""

    @property
    def document_id(self) -> str:
        return self.id or f"id-of-{self.uri}"
