"""A parser of a multipart/form-data form with one file; it gets the bytes as they arrive.

The file's content is returned in the pieces in which it arrives. If the rest of the form is large,
the form is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_assets.common.errors import UploadRefused

_FILE = "file"
_FIELD_BYTES = 1_024
_MOST_PARTS = 20
_HINT = "send multipart/form-data with one `file`, and with `replaces` if it replaces an upload"


@dataclass
class _Part:
    """The part of a form that is being parsed."""

    headers: dict[str, str] = field(default_factory=dict)
    name: str = ""
    is_file: bool = False
    value: bytearray = field(default_factory=bytearray)


class UploadForm:
    """A form with one file.

    Args:
        content_type: header of the request.
        fields: names of the fields that the form may have in addition to `file`.

    Attributes:
        file_name: name from the form; None until the file starts.
        values: values of the fields so far.

    Raises:
        UploadRefused: the request is not a form.
    """

    def __init__(self, content_type: str, fields: frozenset[str]) -> None:
        from python_multipart.multipart import MultipartParser, parse_options_header

        kind, options = parse_options_header(content_type)
        boundary = options.get(b"boundary")
        if kind != b"multipart/form-data" or not boundary:
            raise _refused("the request is not a form with a file")
        self.file_name: str | None = None
        self.values: dict[str, str] = {}
        self._fields = fields
        self._options_of = parse_options_header
        self._part = _Part()
        self._header = (bytearray(), bytearray())
        self._parts = 0
        self._pieces: list[bytes] = []
        self._ended = False
        callbacks: Mapping[str, Callable[..., None]] = {
            "on_part_begin": self._begin_part,
            "on_part_data": self._take_data,
            "on_part_end": self._end_part,
            "on_header_field": lambda data, start, end: self._header[0].extend(data[start:end]),
            "on_header_value": lambda data, start, end: self._header[1].extend(data[start:end]),
            "on_header_end": self._end_header,
            "on_headers_finished": self._end_headers,
            "on_end": self._end,
        }
        self._parser: Any = _guarded(lambda: MultipartParser(boundary, callbacks))  # type: ignore[arg-type]

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Parse the next bytes of the form; return the pieces of the file's content in them.

        Raises:
            UploadRefused: the body is not a form with one file.
        """
        _guarded(lambda: self._parser.write(data))
        pieces, self._pieces = self._pieces, []
        return iter(pieces)

    def finish(self) -> str:
        """Check that the form is complete, and return the name of the file.

        Raises:
            UploadRefused: the form is incomplete or lacks a file.
        """
        if not self._ended:
            raise _refused("the form is incomplete")
        if self.file_name is None:
            raise _refused("the form contains no file")
        return self.file_name

    def _begin_part(self) -> None:
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise _refused(f"the form has more than {_MOST_PARTS} parts")
        self._part = _Part()

    def _end_header(self) -> None:
        name, value = (bytes(part).decode("latin-1") for part in self._header)
        self._part.headers[name.lower()] = value
        self._header = (bytearray(), bytearray())

    def _end_headers(self) -> None:
        part = self._part
        _, options = self._options_of(part.headers.get("content-disposition", ""))
        part.name = _decode(options.get(b"name", b""))
        if part.name == _FILE:
            if self.file_name is not None:
                raise _refused("the form contains several files")
            part.is_file = True
            self.file_name = _decode(options.get(b"filename", b""))
        elif b"filename" in options:
            raise _refused("the field with the file must be named `file`")
        elif part.name not in self._fields or part.name in self.values:
            raise _refused("the form contains an unknown or repeated field")

    def _take_data(self, data: bytes, start: int, end: int) -> None:
        if self._part.is_file:
            self._pieces.append(data[start:end])
            return
        self._part.value += data[start:end]
        if len(self._part.value) > _FIELD_BYTES:
            raise _refused("a field of the form is too long")

    def _end_part(self) -> None:
        if not self._part.is_file:
            self.values[self._part.name] = _decode(bytes(self._part.value))

    def _end(self) -> None:
        self._ended = True


def _guarded(parse: Callable[[], Any]) -> Any:
    from python_multipart.exceptions import FormParserError

    try:
        return parse()
    except FormParserError:
        # The message of the error may quote the form.
        raise _refused("the form cannot be read") from None


def _decode(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _refused(why: str) -> UploadRefused:
    return UploadRefused(why, hint=_HINT)
