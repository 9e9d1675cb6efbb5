"""The text of a hook: a block for each tenant, beside whatever else the hook does.

A block makes an empty file whose name is the tenant's, without starting a process: that takes less
than a millisecond, and what fails of it fails silently. Scripts of a shell get the block after
their first line, so that they still run under their own name. What cannot hold it, as a program or
a script of another language, is kept beside the hook and run by it.
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
    """The block that tells of one tenant.

    Args:
        tenant: its id.
        told: path of the file that it makes.
    """
    place = shlex.quote(told)
    # `true` is no special builtin: where the file cannot be made, the script goes on. A pipe that
    # stands there would hold it up.
    return (
        f"# >>> rag-assets {tenant}\n"
        f"test -p {place} || true 2>/dev/null >|{place} || true\n"
        f"# <<< rag-assets {tenant}\n"
    )


def takes_blocks(content: bytes) -> bool:
    """Whether a hook is a script of a POSIX shell, which can hold a block."""
    if b"\0" in content:
        return False
    first = content.partition(b"\n")[0]
    return not first.startswith(b"#!") or _SHELLS.fullmatch(first.rstrip()) is not None


def new_hook(block: str, kept: str | None) -> bytes:
    """A hook of ours with one block.

    Args:
        block: see block_of.
        kept: name of the hook beside it that it runs in the end; None for none.
    """
    return (_SHELL + _OURS + block + (_run_of(kept) if kept else "")).encode()


def with_block(content: bytes, tenant: str, block: str) -> bytes:
    """A script with the tenant's block, once, after its first line if that names the shell."""
    bare = without_block(content, tenant)
    if not bare.startswith(b"#!"):
        return block.encode() + bare
    first, _, rest = bare.partition(b"\n")
    if rest.startswith(_OURS.encode()):
        first, rest = first + b"\n" + _OURS.encode().rstrip(), rest.removeprefix(_OURS.encode())
    return first + b"\n" + block.encode() + rest


def without_block(content: bytes, tenant: str) -> bytes:
    """A script without the tenant's block."""
    name = re.escape(tenant.encode())
    block = (
        rb"(?m)^# >>> rag-assets " + name + rb"\n(?:[^\n]*\n)??# <<< rag-assets " + name + rb"\n"
    )
    return re.sub(block, b"", content)


def is_ours(content: bytes) -> bool:
    """Whether a hook was made by us, and holds nothing of others."""
    return content.startswith((_SHELL + _OURS).encode())


def is_empty(content: bytes) -> bool:
    """Whether a hook of ours has no block left."""
    return is_ours(content) and b"# >>> rag-assets " not in content


def is_tenant(name: str) -> bool:
    """Whether a text can be the id of a tenant, and so the name of a file."""
    return _TENANT.fullmatch(name) is not None


def _run_of(kept: str) -> str:
    path = '"${0%/*}"/' + shlex.quote(kept)
    return f'if [ -x {path} ]; then exec {path} "$@"; fi\n'
