"""A random walk: each step is an action of an operator on one of two installations."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable
from typing import TypeAlias

from tests.databases import create_database
from tests.e2e.killing import KILLED, ForkServer
from tests.e2e.operators.model import BLOBS, PREFIX, Operated
from tests.e2e.operators.world import World
from tests.parsers import share_parsers
from tests.sites import Site

Step: TypeAlias = Callable[["Walk", Operated], None]
MOVE = ("installation move", "sync")
"""The ways out that an operator takes who has moved something."""
_STEPS: dict[str, tuple[Step, int]] = {}


def step(weight: int) -> Callable[[Step], Step]:
    """Register a step with its relative frequency."""

    def register(function: Step) -> Step:
        _STEPS[function.__name__] = function, weight
        return function

    return register


class Walk:
    """The walk of one operator.

    Args:
        world: the servers.
        server: runs the commands that are killed.
        seed: of all random choices.
    """

    def __init__(self, world: World, server: ForkServer, seed: int) -> None:
        self.world = world
        self.server = server
        self.random = random.Random(seed)
        self.installations = [self._new_installation(name) for name in ("alpha", "beta")]
        self.log: list[str] = []

    def _new_installation(self, name: str) -> Operated:
        home = self.world.folder / name / "home"
        home.mkdir(parents=True)
        share_parsers(home)
        database = self.world.new_name(f"{self.world.stem}{name[0]}")
        environment = {
            "RAG_ASSETS_DATABASE_URL": create_database(self.world.postgres_url, database),
            "RAG_ASSETS_ELASTICSEARCH_URL": os.environ["RAG_ASSETS_ELASTICSEARCH_URL"],
            # One prefix is the beginning of the other.
            PREFIX: self.world.stem if name == "alpha" else f"{self.world.stem}-index",
            "RAG_ASSETS_MASTER_KEY_FILE": str(self.world.folder / "master.key"),
            "RAG_ASSETS_DEBUG": "1",
        }
        operated = Operated(self.world, name, Site(home, environment))
        for tenant_id in ("acme", "globex"):
            inside = home / "docs" / tenant_id
            outside = self.world.folder / name / "disk" / tenant_id
            operated.add_tenant(tenant_id, inside if tenant_id == "acme" else outside)
            for number in range(3):
                operated.write(tenant_id, f"{number}.md")
            operated.upload(tenant_id, self.world.new_word())
            operated.push(tenant_id, "page")
        operated.verify()
        return operated

    def take(self, number: int) -> None:
        """Take one step with one installation; fail if the other one changes."""
        operated, other = self.random.sample(self.installations, 2)
        names = list(_STEPS)
        weights = [_STEPS[name][1] for name in names]
        [name] = self.random.choices(names, weights)
        self.log.append(f"{number} {operated.name} {name}")
        before = other.fingerprint()
        began = time.monotonic()
        _STEPS[name][0](self, operated)
        self.log[-1] += f" ({time.monotonic() - began:.1f} s)"
        operated.note_places()
        if other in self.installations:
            assert other.fingerprint() == before, f"{other.name} was changed"

    def write_log(self) -> None:
        """Write the steps to a file; if the last one failed, also to standard error."""
        (self.world.folder / "walk.log").write_text("\n".join([*self.log, ""]))
        if sys.exc_info()[0] is not None:
            shown = ["the last steps:", *self.log[-25:], "the last commands:", *self.world.commands]
            sys.stderr.write("\n".join([*shown, ""]))

    def note(self, text: str) -> None:
        """Add a note to the log line of the present step."""
        self.log[-1] += f" {text}"

    def tenant(self, operated: Operated) -> str:
        """Return a random tenant."""
        return self.random.choice(sorted(operated.tenants))

    def kill(self, operated: Operated, command: list[str], after: float) -> None:
        """Start a command, and kill it after some seconds if it is still running."""
        variables = {**operated.site.variables, BLOBS: str(operated.place("blobs"))}
        outcome = self.server.run(*command, kill_after=after, **variables)
        self.note("killed" if outcome.code == KILLED else f"ended with {outcome.code}")

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def other(self, operated: Operated) -> Operated:
        return next(
            installation for installation in self.installations if installation is not operated
        )
