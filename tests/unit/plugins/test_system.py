import subprocess
import sys
from dataclasses import fields

import pytest

from rag_assets.common.errors import ConfigurationError
from rag_assets.plugins.system import PART_KINDS, Migrations, Profile, System

THRESHOLDS = {"openai/text-embedding-3-small": 0.75}


@pytest.mark.parametrize(
    ("embedder_id", "least"),
    [
        ("openai/text-embedding-3-small@1536", 0.75),
        ("openai/text-embedding-3-small@512~second", 0.75),
        ("openai/text-embedding-3-large@1536", None),
        ("text-embedding-3-small@1536", None),
    ],
)
def test_a_threshold_belongs_to_one_model(embedder_id: str, least: float | None) -> None:
    assert Profile(defaults={}, thresholds=THRESHOLDS).threshold(embedder_id) == least


def test_every_kind_of_part_is_an_attribute_with_parts() -> None:
    parts = {field.name for field in fields(System) if str(field.type) == "Parts"}
    assert parts == set(PART_KINDS)


@pytest.mark.parametrize("name", ["", "Team", "team_guidelines", "-a", "a--b", "1a", "a\n"])
def test_a_malformed_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="the name is not valid"):
        System(name=name)


def test_own_process_commands_must_be_commands_of_the_system() -> None:
    commands = frozenset({"x", "y"})
    with pytest.raises(ConfigurationError, match="own_process_commands: 'y' is not one"):
        System(name="notes", commands={"x": "notes:app"}, own_process_commands=commands)


def test_the_problem_of_an_opt_in_must_be_one_of_the_system() -> None:
    profile = Profile(defaults={}, opt_in_problem="notes-off")
    with pytest.raises(ConfigurationError, match="opt_in_problem: 'notes-off' is not one"):
        System(name="notes", profile=profile)
    System(name="notes", profile=profile, problems={"notes-off": "notes:NotesOff"})


@pytest.mark.parametrize("kind", PART_KINDS)
@pytest.mark.parametrize("reference", ["", "module", "module:", ":name", "a.b:c.d", "a b:c"])
def test_a_malformed_reference_is_refused_with_its_place(kind: str, reference: str) -> None:
    with pytest.raises(ConfigurationError, match=f"system 'notes': {kind}: 'x'"):
        System(name="notes", **{kind: {"x": reference}})


@pytest.mark.parametrize(
    "half",
    [
        {"tables": {"notes": "notes:notes"}},
        {"migrations": Migrations(package="notes", head="0001")},
    ],
)
def test_tables_and_migrations_belong_together(half: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match="without"):
        System(name="notes", **half)  # type: ignore[arg-type]


def test_finding_systems_imports_nothing_heavy() -> None:
    program = (
        "import sys; from rag_assets.plugins.registry import installed_systems;"
        "assert 'documents' in installed_systems().names;"
        "print(*sys.modules)"
    )
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = set(ran.stdout.split())
    heavy = {"dagster", "fastapi", "typer", "pydantic", "sqlalchemy", "elasticsearch", "numpy"}
    assert not heavy & loaded
    assert not {name for name in loaded if name.startswith("rag_assets.ingest")}
