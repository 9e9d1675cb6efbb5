import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import cast
from unittest.mock import Mock

import pytest

from rag_assets.common.errors import ConfigurationError
from rag_assets.plugins.registry import InstalledSystem, Systems
from rag_assets.plugins.system import Profile, System
from rag_assets.search.plan import (
    BUILT_IN,
    DEFAULT_STEPS,
    SearchPlan,
    StepLists,
    load_installed_steps,
)
from rag_assets.search.progress import SearchProgress
from rag_assets.search.services import SearchServices, Step, TrustedStep


@dataclass
class Unchanged:
    services: SearchServices

    async def run(self, state: SearchProgress) -> SearchProgress:
        return state


def services() -> SearchServices:
    return cast("SearchServices", Mock())


def lists(*names: str) -> StepLists:
    return StepLists(added={"decay": Unchanged}, profiles={"experience": names})


def test_default_steps_are_named_in_their_order() -> None:
    wanted = ("recall", "verify", "fuse", "score", "read", "rerank", "gather", "budget")
    assert wanted == DEFAULT_STEPS
    assert StepLists().plan("documents", services()).names == wanted


def test_a_profile_chooses_its_list_and_all_others_have_the_default_one() -> None:
    chosen = lists("recall", "verify", "fuse", "read", "decay")
    assert chosen.plan("experience", services()).names[-1] == "decay"
    assert chosen.plan("documents", services()).names == DEFAULT_STEPS
    assert lists().plan("experience", services()).names == DEFAULT_STEPS


@pytest.mark.parametrize("left_out", ["verify", "read", "fuse"])
def test_no_profile_leaves_out_verification(left_out: str) -> None:
    names = [name for name in DEFAULT_STEPS if name != left_out]
    with pytest.raises(ConfigurationError, match=r"profile 'experience'.*verify, fuse, read"):
        lists(*names)


@pytest.mark.parametrize(
    "names",
    [
        ("recall", "read", "fuse", "verify"),
        ("verify", "recall", "fuse", "read"),
        ("recall", "fuse", "verify", "read"),
        ("recall", "verify", "fuse", "read", "score"),
        ("recall", "verify", "fuse", "rerank", "read"),
        ("recall", "verify", "fuse", "read", "budget", "decay"),
        ("recall", "verify", "fuse", "read", "read"),
        ("recall", "verify", "fuse", "read", "unheard-of"),
    ],
)
def test_a_list_in_another_order_or_with_other_names_is_refused(names: Sequence[str]) -> None:
    with pytest.raises(ConfigurationError, match="retrieval steps of profile 'experience'"):
        lists(*names)


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_no_system_replaces_a_built_in_step(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"'{name}' is built in"):
        StepLists(added={name: Unchanged})


@pytest.mark.parametrize("replaced", ["verify", "read"])
def test_a_plan_takes_no_other_step_for_verification(replaced: str) -> None:
    made = services()
    steps: list[tuple[str, Step]] = [
        (name, Unchanged(made) if name == replaced else BUILT_IN[name](made))
        for name in DEFAULT_STEPS
    ]
    with pytest.raises(ConfigurationError, match="needs the step 'verify', and the step 'read'"):
        SearchPlan(steps, made)


def systems(*names: str, step: str = "decay") -> Systems:
    profile = Profile(defaults={}, retrieval_steps=names)
    here = f"{__name__}:Unchanged"
    system = System(name="experience", profile=profile, retrieval_steps={step: here})
    return Systems([InstalledSystem(system, "experience-package")])


def test_an_installed_system_adds_a_step_for_its_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__) or ModuleType(__name__))
    monkeypatch.setattr(sys.modules[__name__], "Unchanged", Unchanged, raising=False)
    names = ("recall", "verify", "fuse", "read", "decay", "budget")
    found = load_installed_steps(systems(*names))
    assert found.plan("experience", services()).names == names
    assert found.plan("documents", services()).names == DEFAULT_STEPS
    with pytest.raises(ConfigurationError, match="profile 'experience'"):
        load_installed_steps(systems("recall", "fuse", "read", "decay"))
    with pytest.raises(ConfigurationError, match="'verify' of system 'experience'"):
        load_installed_steps(systems(step="verify"))


SERVICES = cast("SearchServices", Mock())


class Foreign(TrustedStep):
    """A step in a foreign package that declares itself trusted."""

    def __init__(self, services: SearchServices) -> None: ...

    async def run(self, progress: SearchProgress) -> SearchProgress:
        return progress


def test_plan_with_step_of_another_package_is_not_trusted() -> None:
    names = ("recall", "foreign", "verify", "fuse", "read", "budget")
    lists = StepLists(added={"foreign": Foreign}, profiles={"notes": names})
    assert not lists.plan("notes", SERVICES).is_trusted
