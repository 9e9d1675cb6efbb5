"""The commands of the core and of systems, imported when a command is run or listed."""

from __future__ import annotations

import click
import typer
from typer.core import TyperGroup
from typer.main import get_command

from rag_assets.common.errors import ConfigurationError


class SystemCommands(TyperGroup):
    """A group with its own commands first, followed by the commands of installed systems."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands; the commands of systems come last."""
        from rag_assets.plugins.registry import installed_systems

        own = super().list_commands(ctx)
        return [*own, *installed_systems().parts("commands", reserved=own)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Find a command by name; None if it does not exist.

        Raises:
            ConfigurationError: the systems, or the command's module, cannot be loaded.
        """
        if (own := super().get_command(ctx, cmd_name)) is not None:
            return own
        from rag_assets.plugins.registry import installed_systems

        part = installed_systems().parts("commands", reserved=self.commands).get(cmd_name)
        if part is None:
            return None
        loaded = part.load()
        if not isinstance(loaded, typer.Typer):
            raise ConfigurationError(
                f"command {cmd_name!r} of system {part.owner.name!r}: {part.reference} is of type"
                f" {type(loaded).__name__}",
                hint="it must be a typer.Typer",
            )
        return _as_own(loaded, cmd_name)


def _as_own(group: typer.Typer, name: str) -> click.Command:
    """Return a system's group as a command, with help in the style of the core's commands."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.add_typer(group, name=name)
    carrier = get_command(app)
    assert isinstance(carrier, TyperGroup)  # noqa: S101 - an app with a group is a group
    return carrier.commands[name]
