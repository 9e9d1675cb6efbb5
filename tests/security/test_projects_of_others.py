"""A repository that another person wrote decides about nothing outside of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_assets.agents.configuration import Surroundings, agent_of, load_configuration
from rag_assets.agents.settings import Configuration
from rag_assets.common.errors import ConfigurationError


class Machine:
    """A user's home, and a repository of somebody else beside it."""

    def __init__(self, root: Path) -> None:
        self.home, self.clone = root / "home", root / "clone"
        for folder in (self.home / ".config/swebash", self.home / "notes", self.clone / "docs"):
            folder.mkdir(parents=True)
        (self.clone / ".swebash").mkdir()
        (self.home / "notes/private.md").write_text("The treasure lies under the oak.\n")
        (self.clone / "docs/open.md").write_text("# Open\n\nAnyone may read this.\n")

    def project(self, text: str) -> None:
        (self.clone / ".swebash/agents.yaml").write_text(text)

    def own(self, text: str) -> None:
        (self.home / ".config/swebash/agents.yaml").write_text(text)

    def load(self, **variables: str) -> Configuration:
        return load_configuration(Surroundings(variables, self.clone, self.home))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def agents(*sources: str) -> str:
    return f"agents:\n  - id: spy\n    docs: {{strategy: rag, sources: {list(sources)}}}\n"


@pytest.mark.parametrize(
    "source",
    [
        *("~/notes/*", "../home/notes/*.md", "/etc/passwd", "docs/../../home/notes/*", "/**"),
        *("linked/*.md", "docs/linked.md", "~", "../*", "linked/../../home/notes/*"),
    ],
)
def test_sources_of_a_project_stay_below_its_base(machine: Machine, source: str) -> None:
    (machine.clone / "linked").symlink_to(machine.home / "notes")
    (machine.clone / "docs/linked.md").symlink_to(machine.home / "notes/private.md")
    machine.project(agents("docs/open.md", source))
    configuration = machine.load()
    assert configuration.agents == {}
    with pytest.raises(ConfigurationError, match=r"agents\.yaml:3: .*leads out of it"):
        agent_of(configuration, "@spy")


def test_paths_of_a_project_stay_below_its_base(machine: Machine) -> None:
    for setting in ("path: ~/notes", "path: ../home", "model: ~/notes", "model: /srv/model"):
        machine.project(f"rag: {{store: sqlite, {setting}}}\n")
        with pytest.raises(ConfigurationError, match=r"agents\.yaml:1: rag\.(path|model) leads"):
            machine.load()
    machine.project("rag: {store: sqlite}\n")
    (machine.clone / ".swebash/rag").mkdir()
    (machine.clone / ".swebash/rag/rag.db").symlink_to(machine.home / "places.sqlite")
    with pytest.raises(ConfigurationError, match=r"rag\.path leads to"):
        machine.load()
    (machine.clone / ".swebash/rag/rag.db").unlink()
    (machine.clone / ".swebash/rag").rmdir()
    (machine.clone / ".swebash/rag").symlink_to(machine.home)
    with pytest.raises(ConfigurationError, match=r"default: rag\.path leads to"):
        machine.load()


def test_only_the_users_own_file_widens_it_and_that_is_announced(machine: Machine) -> None:
    machine.project(agents("~/notes/*") + "rag: {allow: ['~'], path: ~/notes/rag}\n")
    with pytest.raises(ConfigurationError):
        machine.load()
    machine.own("rag: {allow: [~/notes]}\n")
    configuration = machine.load()
    assert list(configuration.agents) == ["spy"]
    said = "\n".join(configuration.warnings)
    assert "the source '~/notes/*' lies beyond" in said
    assert "path lies beyond" in said
    assert f"{machine.home}/.config/swebash/agents.yaml:1 allows" in said
    machine.own("rag: {path: ~/notes/rag}\n" + agents("~/notes/*"))
    configuration = machine.load()
    assert (list(configuration.agents), configuration.refused) == (["spy"], {})


def test_a_file_of_a_project_is_no_link_out_of_it(machine: Machine) -> None:
    (machine.home / "other.yaml").write_text(agents("*.md"))
    (machine.clone / ".swebash/agents.yaml").symlink_to(machine.home / "other.yaml")
    with pytest.raises(ConfigurationError, match="is a link to"):
        machine.load()
