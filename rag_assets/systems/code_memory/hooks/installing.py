"""Installs hooks in a repository next to its existing hooks, and removes them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.private_files import rewrite_file
from rag_assets.systems.code_memory.hooks.script import (
    KEPT_SUFFIX,
    NAMES,
    block_of,
    is_empty,
    is_ours,
    is_tenant,
    new_hook,
    takes_blocks,
    with_block,
    without_block,
)
from rag_assets.systems.code_memory.sources.repositories.configuration import (
    is_true,
    parse_configuration,
)
from rag_assets.systems.code_memory.sources.repositories.folders import (
    RepositoryFolders,
    locate,
    read_configuration,
)
from rag_assets.watch.hooked import hooked_folder

_MODE: Final = 0o755
_MOST_BYTES: Final = 1 << 20
_HOOKS_PATH: Final = "core.hookspath"


@dataclass(frozen=True, slots=True)
class ChangedHooks:
    """The result of changing a repository's hooks.

    Attributes:
        folder: the folder of the hooks.
        hooks: names of the changed hooks.
        kept: those changed hooks whose former version was kept as a separate file.
    """

    folder: Path
    hooks: tuple[str, ...]
    kept: tuple[str, ...] = ()


def install_hooks(local: Path, tenant: str, repository: Path) -> ChangedHooks:
    """Install hooks that immediately report commits, merges, checkouts and rewrites.

    Existing hooks continue to run. A second call changes nothing.

    Args:
        local: the installation's own folder.
        tenant: the tenant of the repository.
        repository: the top folder of a worktree, or a bare repository.

    Raises:
        ConfigurationError: hooks cannot be installed in this repository.
        ListingFailed: the folder is not a repository.
    """
    if not is_tenant(tenant):
        raise ConfigurationError(f"{tenant!r} is no id of a tenant", hint="`rag-assets tenants`")
    told = hooked_folder(local)
    told.mkdir(mode=0o700, parents=True, exist_ok=True)
    block = block_of(tenant, str((told / tenant).absolute()))
    folder = hooks_folder(repository)
    folder.mkdir(parents=True, exist_ok=True)
    changed, kept = [], []
    for name in NAMES:
        hook = folder / name
        content = _content(hook)
        whole = hook.is_symlink() or not _is_executable(hook)
        if content is None:
            _write(hook, new_hook(block, None))
        elif takes_blocks(content) and (is_ours(content) or not whole):
            new = with_block(content, tenant, block)
            if new == content:
                continue
            _write(hook, new)
        else:
            _keep(hook)
            _write(hook, new_hook(block, name + KEPT_SUFFIX))
            kept.append(name)
        changed.append(name)
    return ChangedHooks(folder, tuple(changed), tuple(kept))


def remove_hooks(tenant: str, repository: Path) -> ChangedHooks:
    """Remove a tenant's block from a repository's hooks.

    A new hook without any block left is deleted, or replaced by the former hook that was kept.

    Args:
        repository: see install_hooks.

    Raises:
        ConfigurationError: hooks are switched off in this repository.
        ListingFailed: the folder is not a repository.
    """
    folder = hooks_folder(repository)
    changed = []
    for name in NAMES:
        hook = folder / name
        content = _content(hook)
        if content is None:
            continue
        new = without_block(content, tenant)
        if new == content:
            continue
        changed.append(name)
        before = folder / (name + KEPT_SUFFIX)
        if not is_empty(new):
            _write(hook, new)
        elif before.is_symlink() or before.exists():
            before.replace(hook)
        else:
            hook.unlink()
    return ChangedHooks(folder, tuple(changed))


def hooks_folder(repository: Path) -> Path:
    """Return the folder in which git looks for a repository's hooks; all its worktrees share it.

    The repository's own configuration may only name a folder below its `.git`, because the
    repository may come from another person. The configuration of the user or the machine may name
    any folder.

    Args:
        repository: the top folder of a worktree, or a bare repository.

    Raises:
        ConfigurationError: hooks are switched off, or would be written to another folder.
        ListingFailed: the folder is not a repository.
    """
    folders = locate(repository.expanduser().resolve())
    inside: tuple[Path, ...] = (folders.common, folders.own)
    named = _of_repository(folders)
    if named is None and (named := _of_others()) is not None:
        inside = (Path("/"),) if Path(named).expanduser().is_absolute() else (folders.root,)
    path = Path(named).expanduser() if named else folders.common / "hooks"
    found = path if path.is_absolute() else folders.root / path
    if found.exists() and not found.is_dir():
        raise ConfigurationError(
            f"core.hooksPath is {named!r}, which is no folder: hooks are switched off",
            hint="have it name a folder, or unset it",
        )
    real = found.resolve()
    if not any(real.is_relative_to(folder.resolve()) for folder in inside):
        raise ConfigurationError(
            f"the repository would have its hooks written to {str(real)!r}, out of its .git",
            hint="`git config --unset core.hooksPath` there, or set it in your own ~/.gitconfig",
        )
    return found


def _of_repository(folders: RepositoryFolders) -> str | None:
    """Return core.hooksPath as the worktree or the repository configures it."""
    own = read_configuration(folders.common)
    if is_true(own, "extensions.worktreeconfig"):
        own |= _settings(folders.own / "config.worktree")
    return own.get(_HOOKS_PATH) or None


def _of_others() -> str | None:
    """Return core.hooksPath as the user, or else the machine, configures it."""
    found = (_settings(path).get(_HOOKS_PATH) for path in _files_of_others())
    return next(filter(None, found), None)


def _files_of_others() -> list[Path]:
    """Return the configuration files of the user and of the machine, by precedence."""
    home = Path.home()
    beside = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    return [home / ".gitconfig", beside / "git" / "config", Path("/etc/gitconfig")]


def _settings(path: Path) -> dict[str, str]:
    try:
        return parse_configuration(path.read_bytes()[:_MOST_BYTES])
    except OSError:
        return {}


def _content(hook: Path) -> bytes | None:
    """Return the content of a hook; None if it does not exist, a NUL byte if it is too large."""
    try:
        if not hook.is_file():
            # A broken link counts as an existing hook, which is kept.
            return b"\0" if hook.is_symlink() else None
        with hook.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(
            f"the hook {str(hook)!r} cannot be read: {error.strerror}",
            hint="see that it belongs to whoever installs hooks",
        ) from None
    return content if len(content) <= _MOST_BYTES else b"\0"


def _is_executable(hook: Path) -> bool:
    return os.access(hook, os.X_OK)


def _keep(hook: Path) -> None:
    before = hook.with_name(hook.name + KEPT_SUFFIX)
    if before.is_symlink() or before.exists():
        raise ConfigurationError(
            f"{str(before)!r} is there already", hint="it is a former hook: move it away"
        )
    hook.rename(before)


def _write(hook: Path, content: bytes) -> None:
    """Replace a hook atomically, since git may run it at any moment.

    An existing hook keeps its mode.
    """
    if hook.is_symlink() and not hook.resolve().is_relative_to(hook.parent.parent.resolve()):
        raise ConfigurationError(
            f"the hook {str(hook)!r} is a link to {str(hook.resolve())!r}, which is not changed",
            hint="replace the link by a file, or remove it",
        )
    try:
        rewrite_file(hook, content, new_mode=_MODE)
    except OSError as error:
        raise ConfigurationError(
            f"the hook {str(hook)!r} cannot be written: {error.strerror}",
            hint="run the command as the owner of the repository",
        ) from None
