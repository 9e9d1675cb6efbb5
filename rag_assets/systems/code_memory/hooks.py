"""Git hooks that report changes in a repository, in addition to its existing hooks.

A hook contains a block for each tenant. A block creates an empty file with the tenant's id as its
name. It starts no process, takes less than a millisecond, and ignores failures. In a shell script,
the block is inserted after the first line, so that the script keeps its shell. A program, or a
script in another language, is renamed, and a new hook with the block runs it.
"""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.private_files import rewrite_file
from rag_assets.runtime.watch_report import get_hooked_folder
from rag_assets.systems.code_memory.sources.repositories.folders import (
    RepositoryFolders,
    is_true,
    locate_repository,
    parse_configuration,
    read_configuration,
)

NAMES: Final = ("post-commit", "post-merge", "post-checkout", "post-rewrite")
KEPT_SUFFIX: Final = ".before-rag-assets"

_SHELL: Final = "#!/bin/sh\n"
_OURS: Final = "# Made by rag-assets: `rag-assets hook remove` takes it away.\n"
_SHELLS: Final = re.compile(
    rb"#![ \t]*(?:/[\w./-]*/)?(?:env[ \t]+(?:-S[ \t]+)?)?(?:/[\w./-]*/)?"
    rb"(?:sh|bash|dash|ksh|zsh|ash)(?:[ \t][^\n]*)?"
)
_TENANT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def build_hook_block(tenant: str, path: str) -> str:
    """Return the block that reports changes for one tenant by creating a file at a path."""
    quoted = shlex.quote(path)
    # `true` is not a special builtin, so the script continues if the file cannot be created. The
    # test prevents a named pipe at that path from blocking the script.
    return (
        f"# >>> rag-assets {tenant}\n"
        f"test -p {quoted} || true 2>/dev/null >|{quoted} || true\n"
        f"# <<< rag-assets {tenant}\n"
    )


def can_contain_blocks(content: bytes) -> bool:
    """Return whether a hook is a POSIX shell script, which can contain a block."""
    if b"\0" in content:
        return False
    first = content.partition(b"\n")[0]
    return not first.startswith(b"#!") or _SHELLS.fullmatch(first.rstrip()) is not None


def build_hook(block: str, kept_name: str | None) -> bytes:
    """Return a new hook with one block; the hook runs the former hook `kept_name` last, if any."""
    hook = _SHELL + _OURS + block
    if kept_name:
        path = '"${0%/*}"/' + shlex.quote(kept_name)
        hook += f'if [ -x {path} ]; then exec {path} "$@"; fi\n'
    return hook.encode()


def insert_block(content: bytes, tenant: str, block: str) -> bytes:
    """Return a script with exactly one block for the tenant, placed after the shebang line."""
    bare = remove_block(content, tenant)
    if not bare.startswith(b"#!"):
        return block.encode() + bare
    first, _, rest = bare.partition(b"\n")
    header = _OURS.encode() if rest.startswith(_OURS.encode()) else b""
    return first + b"\n" + header + block.encode() + rest.removeprefix(header)


def remove_block(content: bytes, tenant: str) -> bytes:
    """Return a script without the tenant's block."""
    name = re.escape(tenant.encode())
    block = (
        rb"(?m)^# >>> rag-assets " + name + rb"\n(?:[^\n]*\n)??# <<< rag-assets " + name + rb"\n"
    )
    return re.sub(block, b"", content)


def has_our_header(content: bytes) -> bool:
    """Return whether a hook was created by this module, according to its header."""
    return content.startswith((_SHELL + _OURS).encode())


_MAX_BYTES: Final = 1 << 20
_HOOKS_PATH: Final = "core.hookspath"


@dataclass(frozen=True, slots=True)
class ChangedHooks:
    """The hooks that were changed in a folder, and those whose former file was kept."""

    folder: Path
    hooks: tuple[str, ...]
    kept: tuple[str, ...] = ()


def install_hooks(local: Path, tenant: str, repository: Path) -> ChangedHooks:
    """Install hooks that immediately report commits, merges, checkouts and rewrites.

    Existing hooks continue to run. A second call changes nothing.

    Args:
        local: the folder of the installation's data.

    Raises:
        ConfigurationError, ListingFailed: see find_hooks_folder; or a hook cannot be replaced.
    """
    if not _TENANT.fullmatch(tenant):  # The id becomes the name of a file.
        raise ConfigurationError(
            f"{tenant!r} is not the id of a tenant", hint="run `rag-assets tenants` to list the ids"
        )
    reports_folder = get_hooked_folder(local)
    reports_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    block = build_hook_block(tenant, str((reports_folder / tenant).absolute()))
    folder = find_hooks_folder(repository)
    folder.mkdir(parents=True, exist_ok=True)
    changed, kept_names = [], []
    for name in NAMES:
        hook = folder / name
        content = _read_hook(hook)
        whole = hook.is_symlink() or not os.access(hook, os.X_OK)
        if content is None:
            _write_hook(hook, build_hook(block, None))
        elif can_contain_blocks(content) and (has_our_header(content) or not whole):
            new = insert_block(content, tenant, block)
            if new == content:
                continue
            _write_hook(hook, new)
        else:
            before = folder / (name + KEPT_SUFFIX)
            if before.is_symlink() or before.exists():
                raise ConfigurationError(
                    f"the former hook cannot be renamed: {str(before)!r} already exists",
                    hint="move that file to a different folder",
                )
            hook.rename(before)
            _write_hook(hook, build_hook(block, before.name))
            kept_names.append(name)
        changed.append(name)
    return ChangedHooks(folder, tuple(changed), tuple(kept_names))


def remove_hooks(tenant: str, repository: Path) -> ChangedHooks:
    """Remove a tenant's block from a repository's hooks; errors as in install_hooks.

    A new hook without any block left is deleted, or replaced by the former hook that was kept.
    """
    folder = find_hooks_folder(repository)
    changed = []
    for name in NAMES:
        hook = folder / name
        content = _read_hook(hook)
        if content is None:
            continue
        new = remove_block(content, tenant)
        if new == content:
            continue
        changed.append(name)
        before = folder / (name + KEPT_SUFFIX)
        if not has_our_header(new) or b"# >>> rag-assets " in new:
            _write_hook(hook, new)
        elif before.is_symlink() or before.exists():
            before.replace(hook)
        else:
            hook.unlink()
    return ChangedHooks(folder, tuple(changed))


def find_hooks_folder(repository: Path) -> Path:
    """Return the folder of a repository's hooks, which all its worktrees share.

    The repository's own configuration may only name a folder below its `.git`, because the
    repository may come from another person. The configuration of the user or the machine may name
    any folder.

    Raises:
        ConfigurationError: hooks are switched off, or the folder is outside `.git`.
        ListingFailed: the folder is not a repository.
    """
    folders = locate_repository(repository.expanduser().resolve())
    inside: tuple[Path, ...] = (folders.common, folders.own)
    configured_path = _read_repository_hooks_path(folders)
    if configured_path is None and (configured_path := _read_user_hooks_path()) is not None:
        inside = (
            (Path("/"),) if Path(configured_path).expanduser().is_absolute() else (folders.root,)
        )
    hooks_folder = (
        folders.root / Path(configured_path).expanduser()
        if configured_path
        else folders.common / "hooks"
    )
    if hooks_folder.exists() and not hooks_folder.is_dir():
        raise ConfigurationError(
            f"git hooks are switched off: core.hooksPath is {configured_path!r}, which is not a"
            " folder",
            hint="set core.hooksPath to a folder, or run `git config --unset core.hooksPath`",
        )
    real = hooks_folder.resolve()
    if not any(real.is_relative_to(folder.resolve()) for folder in inside):
        raise ConfigurationError(
            f"core.hooksPath of the repository leads to {str(real)!r}, outside of its .git folder",
            hint="run `git config --unset core.hooksPath` in the repository, or set"
            " core.hooksPath in your own ~/.gitconfig",
        )
    return hooks_folder


def _read_repository_hooks_path(folders: RepositoryFolders) -> str | None:
    """Return core.hooksPath of the worktree, or else of the repository; None if it is not set."""
    own = read_configuration(folders.common)
    if is_true(own, "extensions.worktreeconfig"):
        own |= _read_settings(folders.own / "config.worktree")
    return own.get(_HOOKS_PATH) or None


def _read_user_hooks_path() -> str | None:
    """Return core.hooksPath from the configuration of the user, else of the machine, else None."""
    home = Path.home()
    configuration = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    paths = home / ".gitconfig", configuration / "git" / "config", Path("/etc/gitconfig")
    hooks_paths = (_read_settings(path).get(_HOOKS_PATH) for path in paths)
    return next(filter(None, hooks_paths), None)


def _read_settings(path: Path) -> dict[str, str]:
    try:
        return parse_configuration(path.read_bytes()[:_MAX_BYTES])
    except OSError:
        return {}


def _read_hook(hook: Path) -> bytes | None:
    """Return the content of a hook; None if absent, a NUL byte if too large or a broken link."""
    try:
        if not hook.is_file():
            return b"\0" if hook.is_symlink() else None
        with hook.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(
            f"the hook {str(hook)!r} cannot be read: {error.strerror}",
            hint="run the command as the owner of the hook",
        ) from None
    return content if len(content) <= _MAX_BYTES else b"\0"


def _write_hook(hook: Path, content: bytes) -> None:
    """Replace a hook atomically, because git may run it at any moment; keep its mode."""
    if hook.is_symlink() and not hook.resolve().is_relative_to(hook.parent.parent.resolve()):
        raise ConfigurationError(
            f"the hook {str(hook)!r} is a link to {str(hook.resolve())!r}, a file outside of the"
            " repository's hooks, which this command does not change",
            hint="replace the link with a file, or remove the link",
        )
    try:
        rewrite_file(hook, content, new_mode=0o755)
    except OSError as error:
        raise ConfigurationError(
            f"the hook {str(hook)!r} cannot be written: {error.strerror}",
            hint="run the command as the owner of the repository",
        ) from None
