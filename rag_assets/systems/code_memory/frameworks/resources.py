"""The conventional routes of Rails and Phoenix resources: `resources :articles, only: [:index]`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.frameworks.definitions import Framework, Resources
from rag_assets.systems.code_memory.frameworks.repository import (
    File,
    argument,
    join_paths,
    named_text,
    named_words,
    strings_of,
)
from rag_assets.systems.code_memory.frameworks.routers import RouterPaths, last_word


class ResourceRoute(NamedTuple):
    """A route of a resource; `path` is None if the path is computed at run time."""

    methods: tuple[str, ...]
    path: str | None
    handler: str


class ResourceRoutes:
    """Finds the routes of resources for one framework."""

    def __init__(self, framework: Framework, paths: RouterPaths) -> None:
        self._framework = framework
        self._resources: Resources | None = framework.resources
        self._paths = paths

    def routes(self, file: File, fact: Fact) -> Iterator[ResourceRoute]:
        """Yield the routes of a call that defines resources."""
        resources = self._resources
        if resources is None or fact.values["name"] not in resources.calls:
            return
        kind = resources.calls[fact.values["name"]]
        names = [*strings_of(fact.values["arguments"])]
        prefix = self._paths.paths_of_blocks(file, fact)
        if not names or prefix is None:
            yield ResourceRoute((), None, "")
            return
        actions = self._selected_actions(fact, resources, resources.actions[kind])
        own = named_text(fact, "path")
        key = named_text(fact, "param") or "id"
        for name in names:
            base = join_paths(prefix, own if own is not None else name)
            owner = self._controller_name(file, fact, name, kind)
            for action, stated in actions.items():
                method, _, rest = stated.partition(" ")
                path = join_paths(base, rest.replace("{id}", f"{{{key}}}"))
                yield ResourceRoute(tuple(method.split("|")), path, f"{owner}::{action}")

    def action_in_block(self, file: File, fact: Fact, path: str) -> str:
        """Return the action of a route in a resource's block, judging by the route's path."""
        resources = self._resources
        if resources is None:
            return ""
        for one in reversed(file.around(file.calls, fact.start)):
            kind = resources.calls.get(one.values["name"])
            value = argument(one, "0")
            if kind is not None and value is not None and value[0] == "s":
                return f"{self._controller_name(file, one, str(value[1]), kind)}::{path}"
        return ""

    def controller(self, file: File, fact: Fact, name: str) -> str:
        """Return the controller that a short name stands for: `admin/orders` in a namespace."""
        spaces = [*self._paths.modules_around(file, fact), *name.split("/")]
        return "::".join(to_pascal_case(one) for one in spaces if one) + "Controller"

    def _selected_actions(
        self, fact: Fact, resources: Resources, known: Mapping[str, str]
    ) -> Mapping[str, str]:
        chosen = named_words(fact, resources.only)
        dropped = named_words(fact, resources.but) or []
        return {
            action: stated
            for action, stated in known.items()
            if (chosen is None or action in chosen) and action not in dropped
        }

    def _controller_name(self, file: File, fact: Fact, name: str, kind: str) -> str:
        alias = next((one[1] for one in fact.values["arguments"] if one[0] == "n"), None)
        if alias is not None:
            return "::".join([*self._paths.modules_around(file, fact), str(alias)])
        named = named_text(fact, "controller")
        plural = name if kind == "many" or name.endswith("s") else f"{name}s"
        return self.controller(file, fact, named or last_word(plural))


def to_pascal_case(name: str) -> str:
    """Convert snake_case to PascalCase: `line_items` becomes `LineItems`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
