"""Names of the methods of Laravel's schema; PHP ignores their case.

A modifier of a column or key (`nullable`) is an attribute name rather than a method, and counts
only in Laravel's spelling.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from rag_assets.systems.code_memory.laravel.schema_php import Chain

_NAMES: Final = (
    "addColumn", "after", "bigIncrements", "bigInteger", "binary", "boolean",
    "cascadeOnDelete", "cascadeOnUpdate", "char", "comment", "computed", "connection",
    "constrained", "create", "date", "dateTime", "datetimes", "dateTimeTz", "decimal",
    "double", "drop", "dropColumn", "dropColumns", "dropConstrainedForeignId",
    "dropConstrainedForeignIdFor", "dropForeign", "dropFullText", "dropIfExists",
    "dropIndex", "dropMorphs", "dropPrimary", "dropRememberToken", "dropSoftDeletes",
    "dropSoftDeletesTz", "dropSpatialIndex", "dropTimestamps", "dropTimestampsTz",
    "dropUnique", "each", "enum", "float", "foreign", "foreignId", "foreignIdFor",
    "foreignUlid", "foreignUuid", "fullText", "geography", "geometry", "geometryCollection",
    "id", "increments", "index", "integer", "integerIncrements", "ipAddress", "json",
    "jsonb", "lineString", "longText", "macAddress", "mediumIncrements", "mediumInteger",
    "mediumText", "morphs", "multiLineString", "multiPoint", "multiPolygon",
    "multiPolygonZ", "noActionOnDelete", "noActionOnUpdate", "nullableMorphs",
    "nullableNumericMorphs", "nullableTimestamps", "nullableUlidMorphs",
    "nullableUuidMorphs", "nullOnDelete", "nullOnUpdate", "numericMorphs", "point",
    "polygon", "primary", "rawIndex", "rememberToken", "removeColumn", "rename",
    "renameColumn", "renameIndex", "restrictOnDelete", "restrictOnUpdate", "set",
    "smallIncrements", "smallInteger", "softDeletes", "softDeletesDatetime",
    "softDeletesTz", "spatialIndex", "statement", "string", "table", "text", "time",
    "timestamp", "timestamps", "timestampsTz", "timestampTz", "timeTz", "tinyIncrements",
    "tinyInteger", "tinyText", "ulid", "ulidMorphs", "unique", "unprepared",
    "unsignedBigInteger", "unsignedDecimal", "unsignedDouble", "unsignedFloat",
    "unsignedInteger", "unsignedMediumInteger", "unsignedSmallInteger",
    "unsignedTinyInteger", "uuid", "uuidMorphs", "vector", "year",
)  # fmt: skip
_LATER: Final = frozenset(
    {"constrained", "create", "table", "rename", "drop", "dropIfExists", "dropColumns", "each"}
    | {name for name in _NAMES if name.endswith(("OnDelete", "OnUpdate"))}
    | {"statement", "unprepared"}
)
"""Methods that also exist on the result of an earlier call in a chain."""

_WRITTEN: Final[Mapping[str, str]] = {name.lower(): name for name in _NAMES}


def canonical(chain: Chain) -> Chain:
    """Return a chain with method names in Laravel's spelling."""
    calls = []
    for position, call in enumerate(chain.calls):
        name = _WRITTEN.get(call.name.lower(), call.name)
        method = position == 0 or name in _LATER
        calls.append(replace(call, name=name) if method else call)
    return replace(chain, calls=tuple(calls))
