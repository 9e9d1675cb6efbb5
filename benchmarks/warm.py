"""Run the command line with all modules imported beforehand, and time it.

    python -m benchmarks.warm MODULES sync bench --json

MODULES is a file of modules to import before the clock starts, one per line. Afterwards it also
contains those that the command imported by itself. `inside`, the seconds of the command alone, is
added to its JSON output.
"""

from __future__ import annotations

import importlib
import io
import json
import sys
import time
from contextlib import redirect_stdout, suppress
from pathlib import Path


def main() -> None:
    """Import the modules, run the command, and print its output."""
    modules = Path(sys.argv[1])
    known = modules.read_text().split() if modules.exists() else []
    for name in known:
        # Some modules cannot be imported on their own, or have renamed themselves.
        with suppress(Exception):
            importlib.import_module(name)
    from rag_assets.cli import main as command

    out, code = io.StringIO(), 0
    started = time.perf_counter()
    try:
        with redirect_stdout(out):
            command(sys.argv[2:])
    except SystemExit as ended:
        code = int(ended.code or 0)
    inside = time.perf_counter() - started
    imported = sorted({*known, *(name for name in sys.modules if not name.startswith("__"))})
    modules.write_text("\n".join(imported) + "\n")
    print(json.dumps({**json.loads(out.getvalue() or "{}"), "inside": inside}))
    sys.stdout.flush()
    sys.exit(code)


if __name__ == "__main__":
    main()
