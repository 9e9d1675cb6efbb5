"""The frameworks of a repository, recognized by the packages in its manifests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Final

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.manifests.facts import facts_of_entries
from rag_assets.systems.code_memory.manifests.lines import statements_of
from rag_assets.systems.code_memory.settings.entries import (
    ini_entries,
    json_entries,
    toml_entries,
    yaml_entries,
)

_READERS: Final = {
    ".cfg": ("ini", ini_entries),
    ".json": ("json", json_entries),
    ".jsonc": ("json", json_entries),
    ".toml": ("toml", toml_entries),
    ".yaml": ("yaml", yaml_entries),
    ".yml": ("yaml", yaml_entries),
}

FRAMEWORKS: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        ("bundler", "rails"): "rails",
        ("bundler", "sinatra"): "sinatra",
        ("cargo", "actix-web"): "actix",
        ("cargo", "axum"): "axum",
        ("cargo", "rocket"): "rocket",
        ("composer", "cakephp/cakephp"): "cakephp",
        ("composer", "laravel/framework"): "laravel",
        ("composer", "laravel/lumen-framework"): "lumen",
        ("composer", "slim/slim"): "slim",
        ("composer", "symfony/framework-bundle"): "symfony",
        ("composer", "symfony/symfony"): "symfony",
        ("composer", "yiisoft/yii2"): "yii",
        ("go", "github.com/gin-gonic/gin"): "gin",
        ("go", "github.com/gofiber/fiber/v2"): "fiber",
        ("go", "github.com/labstack/echo/v4"): "echo",
        ("hex", "phoenix"): "phoenix",
        ("npm", "@angular/core"): "angular",
        ("npm", "@nestjs/core"): "nest",
        ("npm", "@sveltejs/kit"): "sveltekit",
        ("npm", "express"): "express",
        ("npm", "fastify"): "fastify",
        ("npm", "next"): "next",
        ("npm", "nuxt"): "nuxt",
        ("npm", "react"): "react",
        ("npm", "react-native"): "react-native",
        ("npm", "svelte"): "svelte",
        ("npm", "vue"): "vue",
        ("pip", "django"): "django",
        ("pip", "fastapi"): "fastapi",
        ("pip", "flask"): "flask",
        ("pip", "starlette"): "starlette",
        ("pub", "flutter"): "flutter",
    }
)
"""Names of frameworks, by package manager and lower-case package."""


def packages_of(path: str, text: str) -> Iterator[Fact]:
    """Yield the facts `depends_on` of a manifest in any format.

    Args:
        path: POSIX path within the repository.
    """
    read = _READERS.get(PurePosixPath(path.lower()).suffix)
    if read is not None:
        facts = facts_of_entries(read[0], text, read[1](text)[0])
        yield from (fact for fact in facts if fact.kind == "depends_on")
    yield from statements_of(path, text)


def frameworks_of(path: str, text: str) -> dict[str, str]:
    """Return the frameworks that a manifest depends on, each with its version constraint.

    Args:
        path: POSIX path within the repository.
    """
    return frameworks_in(packages_of(path, text))


def frameworks_in(facts: Iterable[Fact]) -> dict[str, str]:
    """Return the frameworks among facts `depends_on`, each with its version constraint."""
    found: dict[str, str] = {}
    for fact in facts:
        values = fact.values
        if fact.kind != "depends_on":
            continue
        package, manager = str(values["package"]).lower(), str(values["manager"])
        name = FRAMEWORKS.get((manager, package))
        if name is None and manager == "maven" and package.startswith("org.springframework.boot:"):
            name = "spring"
        if name is not None:
            found.setdefault(name, str(values["constraint"]))
    return found
