"""Great Expectations suites, validated in memory and shown as data docs.

The validated rows contain only facts about chunks and vectors, no text. No data leaves the machine:
the library's analytics are off, and everything that a browser would fetch from other hosts is
removed from the data docs.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from jinja2 import BytecodeCache
from jinja2.bccache import Bucket

Columns: TypeAlias = Mapping[str, Sequence[Any]]

_MAX_EXAMPLES = 50
_REMOTE = re.compile(
    r"<script[^>]*\bsrc=[\"']?https?:[^>]*>\s*</script>"
    r"|<link[^>]*\bhref=[\"']?https?:[^>]*>"
    r"|<img\b[^>]*>",
    re.IGNORECASE,
)
_UNUSED_FOLDERS = ("images", "fonts")
_HASH = "^[0-9a-f]{64}$"
_BOTH = {"ignore_row_if": "either_value_is_missing"}
_REQUIRED = ("chunk_set", "ordinal", "text_sha256", "start", "end", "token_count")


@dataclass(frozen=True, slots=True)
class Rule:
    """One expectation of a suite.

    Attributes:
        description: condition that every row must meet, for people.
        kind: name of Great Expectations' class.
    """

    description: str
    kind: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """A rule that rows violate.

    Attributes:
        rows: number of rows that violate the rule.
        examples: values that identify the first of these rows.
    """

    description: str
    rows: int
    examples: tuple[tuple[object, ...], ...]


@dataclass(frozen=True, slots=True)
class Validation:
    """The number of validated rows, and the rules that some of them violate."""

    rows: int
    broken: tuple[BrokenRule, ...]


def build_chunk_rules() -> tuple[Rule, ...]:
    """Return the rules for every chunk."""
    return (
        *(_require_value(column) for column in _REQUIRED),
        Rule(
            "a chunk set has one chunk per ordinal",
            "ExpectCompoundColumnsToBeUnique",
            {"column_list": ["chunk_set", "ordinal"]},
        ),
        _require_above("ordinals are below the number of chunks", "chunks", "ordinal"),
        _require_between("a chunk has at least one token", "token_count", 1, None),
        _require_above(
            "a chunk is within the limit of its chunker", "limit", "size", allows_equal=True
        ),
        _require_between("a chunk contains more than white space", "characters", 1, None),
        _require_between("ordinals count from 0", "ordinal", 0, None),
        _require_between("offsets count from 0", "start", 0, None),
        _require_between("lines count from 1", "line_start", 1, None),
        _require_above("a chunk ends after it starts", "end", "start"),
        _require_above(
            "the last line is not before the first line",
            "line_end",
            "line_start",
            allows_equal=True,
        ),
        Rule(
            "the hash equals the hash of the embedded text",
            "ExpectColumnPairValuesToBeEqual",
            {"column_A": "text_sha256", "column_B": "rehashed", **_BOTH},
        ),
    )


def build_vector_rules(dimensions: int) -> tuple[Rule, ...]:
    """Return the rules for every vector."""
    return (
        *(_require_value(column) for column in ("text_sha256", "vector_bytes", "created_at")),
        Rule("a text has one vector", "ExpectColumnValuesToBeUnique", {"column": "text_sha256"}),
        Rule(
            "the key is a SHA-256",
            "ExpectColumnValuesToMatchRegex",
            {"column": "text_sha256", "regex": _HASH},
        ),
        _require_between(
            f"a vector has {dimensions} float32 values",
            "vector_bytes",
            4 * dimensions,
            4 * dimensions,
        ),
    )


def validate(
    name: str, rules: Sequence[Rule], parts: Iterable[Columns], naming: Sequence[str], docs: Path
) -> Validation:
    """Validate rows by the rules, and write data docs about the result.

    Args:
        parts: the rows, by column. Each part is validated separately, so rows with the same key
            must be in the same part.
        naming: columns that identify a row in examples.
        docs: folder of the data docs, which is replaced.
    """
    docs.parent.mkdir(parents=True, exist_ok=True)
    site = Path(tempfile.mkdtemp(prefix=f".{docs.name}-", dir=docs.parent))
    try:
        with _suppress_warnings():
            outcome = _validate(name, rules, parts, naming, site)
        site.chmod(0o755)
        shutil.rmtree(docs, ignore_errors=True)
        site.rename(docs)
    finally:
        shutil.rmtree(site, ignore_errors=True)
    return outcome


def _validate(
    name: str, rules: Sequence[Rule], parts: Iterable[Columns], naming: Sequence[str], site: Path
) -> Validation:
    import great_expectations as gx
    import pandas as pd  # type: ignore[import-untyped]

    context = _create_context()
    asset = context.data_sources.add_pandas("lake").add_dataframe_asset(name=name)
    whole = asset.add_batch_definition_whole_dataframe("rows")
    expectations = [
        getattr(gx.expectations, rule.kind)(
            **rule.arguments, notes=rule.description, meta={"rule": number}
        )
        for number, rule in enumerate(rules)
    ]
    suite = context.suites.add(gx.ExpectationSuite(name=name, expectations=expectations))
    definition = gx.ValidationDefinition(name=name, data=whole, suite=suite)
    context.validation_definitions.add(definition)
    broken: list[BrokenRule] = []
    rows = 0
    for part in parts:
        rows += len(next(iter(part.values()), ()))
        results = definition.run(
            batch_parameters={"dataframe": pd.DataFrame(dict(part))},
            result_format={
                "result_format": "COMPLETE",
                "unexpected_index_column_names": list(naming),
                "partial_unexpected_count": _MAX_EXAMPLES,
            },
        )
        broken += _iter_broken_rules(rules, results.results, naming)
    _write_data_docs(context, site)
    return Validation(rows, tuple(broken))


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


def _create_context() -> Any:
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


def _write_data_docs(context: Any, site: Path) -> None:
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
    # Everything that a browser would fetch from other hosts is removed.
    for page in site.rglob("*.html"):
        page.write_text(_REMOTE.sub("", page.read_text(encoding="utf-8")), encoding="utf-8")
    for name in _UNUSED_FOLDERS:
        shutil.rmtree(site / "static" / name, ignore_errors=True)


def _iter_broken_rules(
    rules: Sequence[Rule], results: Any, naming: Sequence[str]
) -> Iterator[BrokenRule]:
    for outcome in results:
        if outcome.success:
            continue
        rule = rules[outcome.expectation_config.meta["rule"]]
        indexes = outcome.result.get("unexpected_index_list") or []
        examples = [
            tuple(_to_plain_number(row.get(column)) for column in naming) for row in indexes
        ]
        # An expectation that could not be evaluated names no row, and counts as violated.
        count = int(outcome.result.get("unexpected_count") or len(indexes))
        yield BrokenRule(rule.description, count, tuple(examples[:_MAX_EXAMPLES]))


def _to_plain_number(value: object) -> object:
    """Return a NumPy number as a Python number; other values unchanged."""
    item = getattr(value, "item", None)
    return item() if callable(item) else value


def _require_value(column: str) -> Rule:
    words = column.replace("_", " ")
    return Rule(f"{words} is not missing", "ExpectColumnValuesToNotBeNull", {"column": column})


def _require_between(description: str, column: str, low: int, high: int | None) -> Rule:
    arguments = {"column": column, "min_value": low, "max_value": high}
    return Rule(description, "ExpectColumnValuesToBeBetween", arguments)


def _require_above(
    description: str, column: str, other: str, *, allows_equal: bool = False
) -> Rule:
    arguments = {"column_A": column, "column_B": other, "or_equal": allows_equal, **_BOTH}
    return Rule(description, "ExpectColumnPairValuesAToBeGreaterThanB", arguments)


@contextmanager
def _suppress_warnings() -> Iterator[None]:
    """Suppress warnings about the library's own internals."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
