"""Bodies of records, by type: the JSON that an application pushes, and the form that is stored.

The stored form is canonical JSON: equal bodies give equal bytes, whatever the order of their
fields. Code blocks that are marked as secret are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import pairwise
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Final, TypeVar
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
)

from rag_assets.common.times import FIRST_DAY, LAST_DAY
from rag_assets.ingest.sources.records import MAX_UUID_LENGTH, PAGE_UUID

MAX_BLOCKS = 10_000
"""Maximum number of blocks of a page."""

_MAX_PROPERTIES, _MAX_NAME_LENGTH, _MAX_VALUE_LENGTH = 200, 200, 1_000
"""Limits of a row's metadata: number of properties, and characters of a name and of a value."""

# URLs that a browser opens without running code, and without a user name before the host.
_SAFE_URL = re.compile(r"https?://[^/?#@\\]+([/?#].*)?|mailto:.+", re.IGNORECASE)
_PRINTABLE = r"^[^\x00-\x1f\x7f]*$"
_FALSE = frozenset({"", "0", "0.0", "false", "no", "none", "null"})


def is_safe_url(url: str) -> bool:
    """Return whether a text is a complete URL that people can open from a citation."""
    try:
        # Reading the port also fails for a number that is no port.
        _ = urlsplit(url).port
    except ValueError:
        return False
    return _SAFE_URL.fullmatch(url) is not None


def _require_safe_url(url: str) -> str:
    if not is_safe_url(url):
        raise ValueError(
            "it must be a URL with http, https or mailto, without a user before the host"
        )
    return url


def convert_to_utc(at: datetime) -> datetime:
    """Convert a time to UTC.

    Raises:
        ValueError: the catalog cannot store the time.
    """
    utc: datetime | None
    try:
        utc = at.astimezone(UTC)
    except OverflowError:  # at the first and last day of the calendar
        utc = None
    if utc is None or not FIRST_DAY <= utc <= LAST_DAY:
        raise ValueError(f"it must lie between {FIRST_DAY.date()} and {LAST_DAY.date()}")
    return utc


_Any = TypeVar("_Any")


def _require_json(value: _Any) -> _Any:
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        raise ValueError("it contains a number or a string that JSON does not allow") from None
    return value


Id = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=200)]
"""The id of a block, in its application."""
PageId = Annotated[str, StringConstraints(pattern=PAGE_UUID, max_length=MAX_UUID_LENGTH)]
"""The id of a page or a database, in the form that the tree of pages accepts."""
_Text = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]
_Line = Annotated[str, StringConstraints(pattern=_PRINTABLE, max_length=1_000)]
_Kind = Annotated[str, StringConstraints(pattern="^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=63)]
_Url = Annotated[
    str,
    StringConstraints(pattern=r"^[\x21-\x7e]+$", max_length=2_000),
    AfterValidator(_require_safe_url),
]
_Version = Annotated[int, Field(strict=True, ge=0, le=2**53)]
_Time = Annotated[AwareDatetime, AfterValidator(convert_to_utc)]
_Json = Annotated[JsonValue, AfterValidator(_require_json)]
_Metadata = Annotated[Mapping[str, JsonValue], AfterValidator(_require_json)]
_Truth = Annotated[bool, Field(strict=True)]


class _StrictModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PageBlock(_StrictModel):
    """A block of a page.

    Attributes:
        block_id: the block's id in the application.
        type: the block's type, such as paragraph, heading, list, code, table.
        text: the visible text.
        level: for a heading, its level from 1 to 6.
        archived: whether the block is hidden; searches do not find hidden blocks.
        metadata: the application's metadata. A block of code with `secret` set to true is not
            stored.
        children: the nested blocks, if the page is pushed as a whole. They are stored after this
            block, each before its own children. Blocks within an archived block are archived;
            blocks within a secret block are not stored.
    """

    block_id: Id
    type: _Kind
    text: _Text = ""
    level: Annotated[int, Field(strict=True, ge=0, le=6)] | None = None
    archived: _Truth = False
    metadata: _Metadata = {}
    children: tuple[PageBlock, ...] = ()

    @property
    def is_secret(self) -> bool:
        """Return whether the application marks the block as secret; it is then not stored."""
        return self.type.lower().startswith("code") and _is_true(self.metadata.get("secret"))


_SECRET: Final = {"type": "code", "metadata": {"secret": True}}


def _flatten_blocks(blocks: tuple[PageBlock, ...]) -> tuple[PageBlock, ...]:
    """Return blocks and all blocks nested in them as one sequence, each before its children."""
    flat: list[PageBlock] = []
    remaining = [*reversed(blocks)]
    while remaining:
        block = remaining.pop()
        inherited: dict[str, Any] = {"archived": True} if block.archived else {}
        inherited |= _SECRET if block.is_secret else {}
        remaining += [child.model_copy(update=inherited) for child in reversed(block.children)]
        flat.append(block.model_copy(update={"children": ()}) if block.children else block)
    if len(flat) > MAX_BLOCKS:
        raise ValueError(f"a page can have at most {MAX_BLOCKS:,} blocks, including nested blocks")
    return tuple(flat)


def _require_no_children(block: PageBlock) -> PageBlock:
    if block.children:
        raise ValueError(
            "a block that is pushed alone has no children: push the nested blocks separately"
        )
    return block


class TypedBody(_StrictModel):
    """The fields that all types of records have.

    Attributes:
        url: address at which people read the record: http, https or mailto. Citations link to it.
        updated_at: the time of the last change, for a page including its blocks. A write with an
            earlier time than the stored record is outdated.
        version: a number that rises with each change, and orders writes in place of `updated_at`.
    """

    TYPE: ClassVar[str] = ""

    url: _Url | None = None
    updated_at: _Time | None = None
    version: _Version | None = None

    @property
    def is_secret(self) -> bool:
        """Return whether the application marks the record as secret; it is then not stored."""
        return False

    def find_page_uuid(self, source_id: str) -> str | None:
        """Return the id of the page or database whose readers may read the record.

        Return None if all members may read it.
        """
        page_uuid: str = getattr(self, "page_uuid", source_id)
        return page_uuid

    def build_stored_form(self) -> dict[str, Any]:
        """Return the fields that are stored: all except the URL, the time and the version."""
        excluded = {"url", "updated_at", "version"}
        values = self.model_dump(mode="json", exclude=excluded, exclude_defaults=True)
        return {"type": self.TYPE, **values}


class PageBody(TypedBody):
    """A page, with its blocks in their order.

    Attributes:
        title: title of the page.
        blocks: each id at most once, including nested blocks; see PageBlock.children.
    """

    TYPE: ClassVar[str] = "page"

    title: _Line
    blocks: Annotated[
        tuple[PageBlock, ...], Field(max_length=MAX_BLOCKS), AfterValidator(_flatten_blocks)
    ] = ()

    @property
    def secret_blocks(self) -> frozenset[str]:
        """Return the ids of the page's secret blocks, which are not stored."""
        return frozenset(block.block_id for block in self.blocks if block.is_secret)

    def build_stored_form(self) -> dict[str, Any]:
        """Return the fields that are stored: type, title, and the blocks that are not secret."""
        blocks = [build_stored_block(block) for block in self.blocks if not block.is_secret]
        return {"type": self.TYPE, "title": self.title, "blocks": blocks}


class BlockBody(TypedBody):
    """One block of a page that was pushed before; the other blocks stay as they are.

    Attributes:
        page_uuid: the page.
        block: the new state of the block. A new block is put after `after`, or else at the end.
        after: id of the block that precedes it; null: the block comes first. By default the block
            stays where it is.
    """

    TYPE: ClassVar[str] = "block"

    page_uuid: PageId
    block: Annotated[PageBlock, AfterValidator(_require_no_children)]
    after: Id | None = None


class CommentBody(TypedBody):
    """A comment on a page or on a block of it.

    Attributes:
        page_uuid: the page.
        block_id: the block; None for a comment on the page.
        text: text of the comment.
        resolved_at: when the comment was resolved. Searches find it for `resolved_comment_days`
            after that.
    """

    TYPE: ClassVar[str] = "comment"

    page_uuid: PageId
    block_id: Id | None = None
    text: _Text
    resolved_at: _Time | None = None


class FileBody(TypedBody):
    """A file on a page; the file's content is put separately.

    Attributes:
        page_uuid: the page.
        name: name of the file; its extension distinguishes text formats.
        metadata: the application's metadata. A file with `is_secret` set to true is not stored.
    """

    TYPE: ClassVar[str] = "file"

    page_uuid: PageId
    name: Annotated[_Line, StringConstraints(min_length=1)]
    metadata: _Metadata = {}

    @property
    def is_secret(self) -> bool:
        """Return whether the application marks the file as secret; it is then not stored."""
        return _is_true(self.metadata.get("is_secret"))


class TemplateBody(TypedBody):
    """A template, which all members can read.

    Attributes:
        name, description: name and description of the template.
        payload: the contents that the template creates, as JSON; searches find its texts.
    """

    TYPE: ClassVar[str] = "template"

    name: _Line
    description: _Text = ""
    payload: _Json = None

    def find_page_uuid(self, source_id: str) -> str | None:
        """Return None: a template belongs to no page, so all members may read it."""
        return None


class RowValue(_StrictModel):
    """A value in a row of a database.

    Attributes:
        name: name of the column (property).
        value_text: the value as text.
    """

    name: _Line
    value_text: _Text


class DbRowBody(TypedBody):
    """A row of a database.

    Attributes:
        database_uuid: the database.
        values: the values as text, in order. Short values are also stored as metadata, for filters.
    """

    TYPE: ClassVar[str] = "db_row"

    database_uuid: PageId
    values: Annotated[tuple[RowValue, ...], Field(max_length=2_000)]

    def find_page_uuid(self, source_id: str) -> str | None:
        """Return the id of the row's database."""
        return self.database_uuid

    @property
    def properties(self) -> dict[str, list[str]]:
        """Return the short values of the row by the names of their columns, for filters."""
        properties: dict[str, list[str]] = {}
        for row_value in self.values:
            name, value = row_value.name.strip(), row_value.value_text.strip()
            is_short = len(name) <= _MAX_NAME_LENGTH and len(value) <= _MAX_VALUE_LENGTH
            if (
                name
                and value
                and is_short
                and (name in properties or len(properties) < _MAX_PROPERTIES)
            ):
                properties.setdefault(name, []).append(value)
        return properties


BODIES: Final[Mapping[str, type[TypedBody]]] = MappingProxyType(
    {
        body.TYPE: body
        for body in (PageBody, BlockBody, CommentBody, FileBody, TemplateBody, DbRowBody)
    }
)
"""The body of each type of record."""


def serialize_canonical(stored_form: Mapping[str, Any]) -> str:
    """Return a stored form as JSON text that is equal for equal bodies."""
    return json.dumps(stored_form, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def find_block(page: Mapping[str, Any], block_id: str) -> Mapping[str, Any] | None:
    """Return the stored form of a block of a stored page; None if the page has no such block."""
    return next((block for block in page.get("blocks", ()) if block["block_id"] == block_id), None)


def build_block_search_text(block_id: str) -> str:
    """Return a string that a page's stored text contains if, and only if, the page has the block.

    The string cannot occur within the text of a block, where quotes are escaped.
    """
    return f'"block_id":{json.dumps(block_id, ensure_ascii=False)}'


def build_stored_block(block: PageBlock) -> dict[str, Any]:
    """Return the stored form of a block: a JSON object without default values."""
    return block.model_dump(mode="json", exclude_defaults=True)


def _is_true(value: Any) -> bool:
    return str(value).strip().lower() not in _FALSE


class PageBlocks:
    """The blocks of a stored page, for many changes at once.

    The page is parsed once and serialized once, however many blocks change. In between, each block
    knows its neighbours and the page knows its size, so a change costs the same for a page of any
    size.
    """

    def __init__(self, text: str) -> None:
        self._page: dict[str, Any] = json.loads(text)
        self._size = len(text.encode())
        blocks = self._page.get("blocks", ())
        if "blocks" not in self._page:
            self._size += len(b',"blocks":[]')
        self._blocks: dict[str, dict[str, Any]] = {block["block_id"]: block for block in blocks}
        # None stands before the first and after the last block.
        ids = [None, *self._blocks, None]
        self._next: dict[str | None, str | None] = dict(pairwise(ids))
        self._former = {following: block_id for block_id, following in self._next.items()}

    @property
    def text(self) -> str:
        """Return the stored form of the page with the changes so far."""
        return serialize_canonical({**self._page, "blocks": [*self._iter_ordered_blocks()]})

    def compute_changed_size(self, change: BlockBody) -> int:
        """Return the size in bytes that the page's stored form would have after a change."""
        block = change.block
        old = self._blocks.get(block.block_id)
        new = None if block.is_secret else build_stored_block(block)
        count = len(self._blocks) - (old is not None)
        size = self._size - _count_bytes(old) - (1 if old is not None and count else 0)
        return size + _count_bytes(new) + (1 if new is not None and count else 0)

    def put(self, change: BlockBody) -> None:
        """Apply a change: replace or add a block; if it is secret, remove it from the page."""
        size, block = self.compute_changed_size(change), change.block
        own = block.block_id
        former = self._former[own] if own in self._blocks else self._former[None]
        self._unlink(own)
        if not block.is_secret:
            if "after" in change.model_fields_set:
                is_known = change.after is None or change.after in self._blocks
                former = change.after if is_known else self._former[None]
            self._link(own, former, build_stored_block(block))
        self._size = size

    def remove(self, block_id: str) -> None:
        """Remove a block from the page."""
        old = self._blocks.get(block_id)
        if old is not None:
            self._unlink(block_id)
            self._size -= _count_bytes(old) + (1 if self._blocks else 0)

    def _iter_ordered_blocks(self) -> Iterator[dict[str, Any]]:
        at = self._next[None]
        while at is not None:
            yield self._blocks[at]
            at = self._next[at]

    def _link(self, block_id: str, former: str | None, block: dict[str, Any]) -> None:
        following = self._next[former]
        self._blocks[block_id] = block
        self._next[former] = self._former[following] = block_id
        self._former[block_id], self._next[block_id] = former, following

    def _unlink(self, block_id: str) -> None:
        if self._blocks.pop(block_id, None) is not None:
            former, following = self._former.pop(block_id), self._next.pop(block_id)
            self._next[former], self._former[following] = following, former


def _count_bytes(block: dict[str, Any] | None) -> int:
    return 0 if block is None else len(serialize_canonical(block).encode())
