"""The data docs that Great Expectations writes about one validation.

No data leaves the machine: the library's analytics are off, and everything that a browser would
fetch from other hosts is removed from the pages.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from jinja2 import BytecodeCache
from jinja2.bccache import Bucket

_REMOTE = re.compile(
    r"<script[^>]*\bsrc=[\"']?https?:[^>]*>\s*</script>"
    r"|<link[^>]*\bhref=[\"']?https?:[^>]*>"
    r"|<img\b[^>]*>",
    re.IGNORECASE,
)
_UNUSED = ("images", "fonts")


class _TemplateCache(BytecodeCache):
    """Caches compiled Jinja templates in this process.

    Great Expectations creates a Jinja environment for each view of each site. Without a cache, each
    environment compiles its templates again, which is more than half the computation of a small
    validation.
    """

    def __init__(self) -> None:
        self._codes: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        """Load a template that was compiled before; Jinja compares the checksum of its source."""
        if code := self._codes.get(bucket.key):
            bucket.bytecode_from_string(code)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep a compiled template."""
        self._codes[bucket.key] = bucket.bytecode_to_string()


_TEMPLATES = _TemplateCache()


def create_context() -> Any:
    """Return a Great Expectations context that keeps its results in memory."""
    import great_expectations as gx
    from great_expectations.data_context.types.base import (
        DataContextConfig,
        InMemoryStoreBackendDefaults,
        ProgressBarsConfig,
    )

    config = DataContextConfig(
        analytics_enabled=False,
        progress_bars=ProgressBarsConfig(globally=False),
        store_backend_defaults=InMemoryStoreBackendDefaults(init_temp_docs_sites=False),
    )
    return gx.get_context(mode="ephemeral", project_config=config)


def write_data_docs(context: Any, site: Path) -> None:
    """Write the pages about the suite and the results of a context."""
    from great_expectations.render.renderer.site_builder import SiteBuilder

    builder = SiteBuilder(
        data_context=context,
        store_backend={
            "class_name": "TupleFilesystemStoreBackend",
            "base_directory": str(site),
        },
        site_name="docs",
        show_how_to_buttons=False,
        site_section_builders={"profiling": "none"},
        runtime_environment={
            "data_context": context,
            "root_directory": context.root_directory,
            "site_name": "docs",
        },
    )
    for section in (*builder.site_section_builders.values(), builder.site_index_builder):
        section.view_class.env.bytecode_cache = _TEMPLATES
    builder.build()
    _remove_remote_links(site)


def _remove_remote_links(site: Path) -> None:
    """Remove everything from the pages that a browser would fetch from other hosts."""
    for page in site.rglob("*.html"):
        page.write_text(_REMOTE.sub("", page.read_text(encoding="utf-8")), encoding="utf-8")
    for name in _UNUSED:
        shutil.rmtree(site / "static" / name, ignore_errors=True)
