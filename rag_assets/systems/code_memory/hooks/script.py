"""The text of a hook: a block for each tenant, besides everything else that the hook does.

A block creates an empty file with the tenant's id as its name, without starting a process. That
takes less than a millisecond, and failures are silent. In a shell script, the block is inserted
after the first line, so that the script keeps its shell. A program, or a script in another
language, cannot contain the block. It is kept as a file next to the new hook, which runs it.
"""

from __future__ import annotations

import re
import shlex
from typing import Final

NAMES: Final = ("post-commit", "post-merge", "post-checkout", "post-rewrite")
KEPT_SUFFIX: Final = ".before-rag-assets"

_SHELL: Final = "#!/bin/sh\n"
_OURS: Final = "# Made by rag-assets: `rag-assets hook remove` takes it away.\n"
_SHELLS: Final = re.compile(
    rb"#![ \t]*(?:/[\w./-]*/)?(?:env[ \t]+(?:-S[ \t]+)?)?(?:/[\w./-]*/)?"
    rb"(?:sh|bash|dash|ksh|zsh|ash)(?:[ \t][^\n]*)?"
)
_TENANT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def block_of(tenant: str, told: str) -> str:
    """Return the block that reports changes for one tenant.

    Args:
        tenant: the id of the tenant.
        told: path of the file that the block creates.
    """
    place = shlex.quote(told)
    # `true` is not a special builtin: if the file cannot be created, the script continues. A pipe
    # at that path would block it.
    return (
        f"# >>> rag-assets {tenant}\n"
        f"test -p {place} || true 2>/dev/null >|{place} || true\n"
        f"# <<< rag-assets {tenant}\n"
    )


def takes_blocks(content: bytes) -> bool:
    """Return whether a hook is a POSIX shell script, which can contain a block."""
    if b"\0" in content:
        return False
    first = content.partition(b"\n")[0]
    return not first.startswith(b"#!") or _SHELLS.fullmatch(first.rstrip()) is not None


def new_hook(block: str, kept: str | None) -> bytes:
    """Return a new hook with one block.

    Args:
        block: see block_of.
        kept: name of the former hook in the same folder, which the new hook runs last.
    """
    return (_SHELL + _OURS + block + (_run_of(kept) if kept else "")).encode()


def with_block(content: bytes, tenant: str, block: str) -> bytes:
    """Return a script with exactly one block of the tenant, after the shebang if there is one."""
    bare = without_block(content, tenant)
    if not bare.startswith(b"#!"):
        return block.encode() + bare
    first, _, rest = bare.partition(b"\n")
    if rest.startswith(_OURS.encode()):
        first, rest = first + b"\n" + _OURS.encode().rstrip(), rest.removeprefix(_OURS.encode())
    return first + b"\n" + block.encode() + rest


def without_block(content: bytes, tenant: str) -> bytes:
    """Return a script without the tenant's block."""
    name = re.escape(tenant.encode())
    block = (
        rb"(?m)^# >>> rag-assets " + name + rb"\n(?:[^\n]*\n)??# <<< rag-assets " + name + rb"\n"
    )
    return re.sub(block, b"", content)


def is_ours(content: bytes) -> bool:
    """Return whether a hook was written by this module, which its header shows."""
    return content.startswith((_SHELL + _OURS).encode())


def is_empty(content: bytes) -> bool:
    """Return whether a hook written by this module has no block left."""
    return is_ours(content) and b"# >>> rag-assets " not in content


def is_tenant(name: str) -> bool:
    """Return whether a text may be the id of a tenant, and is therefore safe as a file name."""
    return _TENANT.fullmatch(name) is not None


def _run_of(kept: str) -> str:
    path = '"${0%/*}"/' + shlex.quote(kept)
    return f'if [ -x {path} ]; then exec {path} "$@"; fi\n'
