"""Single-file components: Vue and Svelte, with scripts in JavaScript or TypeScript."""

from __future__ import annotations

from rag_assets.systems.code_memory.languages.components.reader import Format, read_component
from rag_assets.systems.code_memory.symbols.model import CodeText

__all__ = ["read_svelte", "read_vue"]


def read_vue(text: str) -> CodeText:
    """Return the units and facts of a .vue file."""
    return read_component(text, Format("vue", _is_setup))


def read_svelte(text: str) -> CodeText:
    """Return the units and facts of a .svelte file."""
    return read_component(text, Format("svelte", _is_instance))


def _is_setup(attributes: dict[str, str]) -> bool:
    return "setup" in attributes


def _is_instance(attributes: dict[str, str]) -> bool:
    return "module" not in attributes and attributes.get("context") != "module"
