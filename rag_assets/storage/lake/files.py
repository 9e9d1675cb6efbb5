"""Files of tables: finding damaged ones, salvaging rows, finding data of erased documents.

A table's log lists its files with their sizes. A listed file that is missing, has another size or
cannot be decoded makes every read of the table fail. A file whose altered bytes can still be
decoded is found by the checksums of its rows. Files that no log lists may still contain rows that
were lost with a log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set

import polars as pl

from rag_assets.common.hashing import HashRange, sha256_hex
from rag_assets.storage.lake.location import Location
from rag_assets.storage.lake.model import DamagedFile, DeadKeys, FileFault, LiveKeys
from rag_assets.storage.lake.rows import CHUNKS_TABLE, EMBEDDINGS_TABLE, PARSED_TEXT_TABLE
from rag_assets.storage.lake.table import (
    FEW_KEYS,
    LOG_FOLDER,
    AlteredRows,
    DataFile,
    KeyedTable,
    data_files,
    filter_rows,
    is_reader_error,
    require_unaltered,
    scan_rows,
)

_LOG = f"{LOG_FOLDER}/"


def damaged_files(
    name: str, table: KeyedTable, decoded: HashRange | None = None
) -> Iterator[DamagedFile]:
    """Yield the damaged files of a table.

    Args:
        decoded: files to read completely: those whose names have a SHA-256 in this range. None
            reads no file completely.

    Raises:
        ServiceUnavailable: the location could not be read.
    """
    try:
        files = _find_listed_files(table)
        if files is None and any(_iter_parquet_files(table)):
            yield DamagedFile(name, _LOG, "missing")
        for file in files or ():
            whole = decoded is not None and sha256_hex(file.path) in decoded
            fault = _fault(table, file, whole=whole)
            if fault is not None:
                yield DamagedFile(name, file.path, fault, file.bytes)
    except _UnreadableLog:
        yield DamagedFile(name, _LOG, "unreadable")
    except OSError as error:
        raise table.unavailable(error, "read") from error


def drop_damaged(table: KeyedTable, damaged: Iterable[DamagedFile]) -> None:
    """Remove damaged files from a table's log, so that its other files can be read again.

    A log that cannot be read is deleted; `salvage` then finds the rows of its files.
    """
    damaged = list(damaged)
    if any(file.path == _LOG for file in damaged):
        table.guard()
        table.location.child(LOG_FOLDER).remove()
        table.forget()
        return
    if damaged:
        table.remove(damaged)
        table.forget()


def salvage(
    table: KeyedTable, keys: Set[str], *, name: str | None = None, description: str = ""
) -> int:
    """Append the rows with these keys that only unlisted files contain; return their number.

    Args:
        name, description: name and description of the table, used only if it is created.
    """
    left = set(keys)
    if not left:
        return 0
    listed = {file.path for file in table.files()}
    saved = 0
    for url in list(_iter_parquet_files(table)):
        if url.rsplit("/", 1)[-1] in listed or not left:
            continue
        rows = _readable(table, url, left)
        if rows is None or rows.is_empty():
            continue
        table.append(rows, name=name, description=description)
        saved += len(rows)
        left -= set(rows[table.kind.key])
    return saved


class _UnreadableLog(ValueError):
    """The log of a table is damaged and cannot be decoded."""


def _find_listed_files(table: KeyedTable) -> list[DataFile] | None:
    """Return the files that a table lists; None if it does not exist.

    Raises:
        _UnreadableLog: the table's log cannot be decoded.
        OSError: the location cannot be read.
    """
    try:
        table.forget()
        opened = table.open()
        return None if opened is None else data_files(opened, table.kind.key)
    except BaseException as error:
        if isinstance(error, OSError) or not is_reader_error(error):
            raise
        raise _UnreadableLog from error


def _readable(table: KeyedTable, url: str, keys: Set[str]) -> pl.DataFrame | None:
    rows = scan_rows(table.kind, [url]).select(list(table.kind.schema))
    rows = filter_rows(rows, table.kind.key, keys)
    try:
        return require_unaltered(rows.collect())
    except BaseException as error:
        if not is_reader_error(error):
            raise
        return None


def _iter_parquet_files(table: KeyedTable) -> Iterator[str]:
    for url in table.location.files():
        if url.endswith(".parquet") and f"/{_LOG}" not in url:
            yield url


def _fault(table: KeyedTable, file: DataFile, *, whole: bool) -> FileFault | None:
    url = f"{table.location.url}/{file.path}"
    size = table.location.read_file_size(url)
    if size is None:
        return "missing"
    if size != file.bytes:
        return "cut"
    rows = scan_rows(table.kind, [url])
    try:
        if whole:
            found = require_unaltered(rows.select(list(table.kind.schema)).collect())
            _require_all_by_key(table, rows, found[table.kind.key])
        else:
            rows.select(pl.len()).collect()
    except AlteredRows:
        return "altered"
    except BaseException as error:
        if isinstance(error, OSError) or not is_reader_error(error):
            raise
        return "unreadable"
    return None


def _require_all_by_key(table: KeyedTable, rows: pl.LazyFrame, keys: pl.Series) -> None:
    """Require that reading by key returns every row of a file.

    It misses rows if the file's statistics, which decide what is read, were altered.
    """
    key = table.kind.key
    for part in keys.sort().to_frame().iter_slices(FEW_KEYS):
        by_key = filter_rows(rows, key, part[key].unique().to_list()).select(pl.len()).collect()
        if by_key.item() != len(part):
            raise AlteredRows(f"a read by key finds {by_key.item()} of {len(part)} rows")


_TEXTS = {
    "parsed_text": (PARSED_TEXT_TABLE, pl.col("text")),
    "chunks": (
        CHUNKS_TABLE,
        pl.concat_str(
            pl.col("chunks").list.eval(pl.element().struct.field("text")).list.join("\n"),
            pl.col("contexts").list.join("\n").fill_null(""),
            pl.col("facts").fill_null(""),
            separator="\n",
        ),
    ),
}


def find_phrases_in_kept_texts(
    table: KeyedTable, dead: Set[str], phrases: Sequence[str]
) -> set[str]:
    """Return those phrases that also occur in texts that are not being deleted."""
    opened = table.open()
    if opened is None or not phrases:
        return set()
    others = table.scan(opened).filter(
        ~pl.col("key").is_in(sorted(dead)), pl.col("text").str.contains_any([*phrases])
    )
    texts = others.select("text").collect()["text"]
    return {phrase for phrase in phrases for text in texts if phrase in text}


def files_holding(
    location: Location, dead: DeadKeys, phrases: Sequence[str], needed: LiveKeys
) -> Iterator[str]:
    """Yield the paths of files that contain data of erased documents, relative to the location.

    In a data file, such data is a row with a dead key, or a row with a phrase whose key is not
    needed. In a table's log, it is a phrase.
    """
    for url in location.files():
        parts = url[len(location.url) :].strip("/").split("/")
        if LOG_FOLDER in parts:
            text = "" if url.endswith(".parquet") else location.read(url)
            holds = any(phrase in text for phrase in phrases)
        else:
            holds = url.endswith(".parquet") and _holds(
                location, url, parts[0], dead=dead, phrases=phrases, needed=needed
            )
        if holds:
            yield "/".join(parts)


def _holds(
    location: Location,
    url: str,
    table: str,
    *,
    dead: DeadKeys,
    phrases: Sequence[str],
    needed: LiveKeys,
) -> bool:
    kind, text = _TEXTS.get(table, (EMBEDDINGS_TABLE, None))
    key = kind.key
    rows = scan_rows(kind, [url])
    keys: set[str] = set(rows.select(key).collect()[key])
    if keys & dead.of_table(table):
        return True
    live = needed.of_table(table)
    unneeded = set() if live is None else keys - live
    if text is None or not unneeded or not phrases:
        return False
    of_nobody = filter_rows(rows, key, unneeded)
    found = of_nobody.select(text.str.contains_any([*phrases]).any().alias("found"))
    return bool(found.collect()["found"][0])
