"""Suffixes by which a path names the format of an answer: `users.json`, of REST framework."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rag_assets.code.frameworks.django.calls import argument, items_of


@dataclass(frozen=True, slots=True)
class Suffixes:
    """What is added to each path of a list.

    Attributes:
        formats: that are allowed; all, if there is none.
        required: whether paths without a suffix are left out.
    """

    formats: tuple[str, ...] = ()
    required: bool = False

    def added(self, pattern: str, *, regex: bool) -> str:
        """A pattern with a suffix.

        Args:
            pattern: as the list has it.
            regex: whether it is a regular expression.
        """
        start = pattern.rstrip("$").rstrip("/")
        if not regex:
            return f"{start}<{'_'.join(['drf_format_suffix', *self.formats])}:format>"
        one = "|".join(self.formats) or "[a-z0-9]+"
        return rf"{start}\.(?P<format>{f'({one})' if len(self.formats) > 1 else one})/?$"


def suffixes_of(call: Any) -> Suffixes | None:
    """The suffixes of a call of `format_suffix_patterns`; None where they are computed."""
    required = argument(call, 1, "suffix_required") or False
    allowed = argument(call, 2, "allowed")
    formats = tuple(items_of(allowed))
    stated = all(isinstance(one, str) for one in formats) and (allowed is None or formats)
    return Suffixes(formats, required) if stated and isinstance(required, bool) else None
