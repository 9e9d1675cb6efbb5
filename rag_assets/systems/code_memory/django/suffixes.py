"""Format suffixes of paths in Django REST framework: `users.json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rag_assets.systems.code_memory.django.calls import argument, items_of


@dataclass(frozen=True, slots=True)
class Suffixes:
    """The suffix that is added to each path in a list.

    Attributes:
        formats: allowed formats; all if empty.
        required: whether paths without a suffix are left out.
    """

    formats: tuple[str, ...] = ()
    required: bool = False

    def added(self, pattern: str, *, regex: bool) -> str:
        """Return a pattern with a suffix.

        Args:
            pattern: as in the list.
            regex: whether it is a regular expression.
        """
        start = pattern.rstrip("$").rstrip("/")
        if not regex:
            return f"{start}<{'_'.join(['drf_format_suffix', *self.formats])}:format>"
        one = "|".join(self.formats) or "[a-z0-9]+"
        return rf"{start}\.(?P<format>{f'({one})' if len(self.formats) > 1 else one})/?$"


def suffixes_of(call: Any) -> Suffixes | None:
    """Return the suffixes in a call of `format_suffix_patterns`; None if they are computed."""
    required = argument(call, 1, "suffix_required") or False
    allowed = argument(call, 2, "allowed")
    formats = tuple(items_of(allowed))
    stated = all(isinstance(one, str) for one in formats) and (allowed is None or formats)
    return Suffixes(formats, required) if stated and isinstance(required, bool) else None
