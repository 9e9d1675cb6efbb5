"""Templates of the panel and of the systems in it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from jinja2 import BaseLoader, ChoiceLoader, PackageLoader, PrefixLoader

from rag_assets.panel.assets import address_of
from rag_assets.panel.settings import PATH
from rag_assets.web.renderer import environment

if TYPE_CHECKING:
    from rag_assets.panel.frame import SystemPanel


class Renderer:
    """Renders pages.

    Args:
        systems: systems with templates; each template is found below the system's name.
    """

    def __init__(self, systems: Iterable[SystemPanel]) -> None:
        of_systems: dict[str, BaseLoader] = {
            system.name: PackageLoader(system.package) for system in systems
        }
        loader = ChoiceLoader([PackageLoader("rag_assets.panel"), PrefixLoader(of_systems)])
        self._environment = environment(loader)
        self._environment.filters |= {"moment": minute, "person": person, "embedder": embedder}
        self._environment.globals |= {"asset": address_of, "panel": PATH}

    def page(self, template: str, **values: Any) -> str:
        """Render a page, or a part of a page."""
        return self._environment.get_template(template).render(**values)


def minute(at: datetime | None) -> str:
    """Format a time in UTC, to the minute; "never" if there is none."""
    return "never" if at is None else f"{at:%Y-%m-%d %H:%M} UTC"


def person(name: str) -> str:
    """Return the name of a caller without the prefix that states the kind of the token."""
    return name.removeprefix("jwt:")


def embedder(embedder_id: str) -> str:
    """Return the name of an embedder without the digest of its settings."""
    return embedder_id.partition("+")[0]
