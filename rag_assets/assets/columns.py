"""The columns of the assets' tables, for the catalog of the UI."""

from __future__ import annotations

from collections.abc import Mapping

import dagster as dg


def _schema(columns: Mapping[str, tuple[str, str]]) -> dg.TableSchema:
    return dg.TableSchema(
        [dg.TableColumn(name, kind, text) for name, (kind, text) in columns.items()]
    )


DOCUMENT_COLUMNS = _schema(
    {
        "document_id": ("string", "hash of the source's name and the path in it"),
        "uri": ("string", "printable name: source and path"),
        "status": ("string", "PROCESSING, READY, FAILED or DELETED"),
        "error_message": ("string", "why it FAILED"),
        "media_type": ("string", "by its name"),
        "content_sha256": ("string", "hash of its bytes; none while it cannot be read"),
        "document_key": ("string", "hash of everything that is known before parsing"),
        "chunk_count": ("int", "entries of its searchable version"),
        "dropped_count": ("int", "chunks dropped because of a credential"),
        "access_scope": ("string", "who may read it"),
        "changed_at": ("timestamp", "when a listing last found its content changed"),
        "modified_at": ("timestamp", "when the content was made, according to its source"),
    }
)
PARSED_COLUMNS = _schema(
    {
        "key": ("string", "parse_key: hash of content, type, parsers and secret rules"),
        "digest": ("string", "hash of the output; the next key derives from it"),
        "text": ("string", "with every credential masked, without changing offsets"),
        "blocks": ("list", "kind, offsets, heading path, page, slide, sheet or row"),
        "title": ("string", "found in the content, never derived from the file's name"),
        "media_type": ("string", "detected from the content"),
        "pages": ("int", "pages, slides or sheets"),
        "ocr_pages": ("int", "pages read by OCR"),
        "masked": ("list", "place of each credential, and the rule that found it"),
        "created_at": ("timestamp", "when it was computed"),
    }
)
CHUNK_COLUMNS = _schema(
    {
        "key": (
            "string",
            "chunk_set_key: hash of parsed digest, type, detector and chunker",
        ),
        "digest": ("string", "hash of the chunks; the index key derives from it"),
        "chunks": ("list", "text, offsets, heading path, place and token count of each"),
        "text_sha256": ("list", "hash of each embedded text, in their order"),
        "contexts": ("list", "lines from above each chunk that begins within a block"),
        "dropped": ("list", "place and rules of dropped chunks, never their text"),
        "language": ("string", "of the document; none where that is not sure"),
        "created_at": ("timestamp", "when it was computed"),
    }
)
EMBEDDING_COLUMNS = _schema(
    {
        "text_sha256": ("string", "hash of the embedded text: title, headings, context, passage"),
        "vector": ("binary", "little-endian float32, of length 1"),
        "created_at": ("timestamp", "when it was stored"),
    }
)
ENTRY_COLUMNS = _schema(
    {
        "tenant": ("keyword", "the tenant; also the routing"),
        "generation": ("integer", "generation of the tenant"),
        "document_id": ("keyword", "which document"),
        "index_key": (
            "keyword",
            "version of the document; only the one in the catalog is returned",
        ),
        "ordinal": ("integer", "which chunk"),
        "uri": ("keyword", "source and path of the document"),
        "title": ("text", "of the document"),
        "heading_path": ("text", "headings above the passage"),
        "context": ("text", "of a passage that begins within a table, a list or code"),
        "language": ("keyword", "of the document; none where that is not sure"),
        "modified_at": ("date", "when its current content was made"),
        "text": ("text", "the passage"),
        "access_scope": ("keyword", "who may read it"),
        "vector": ("dense_vector", "cosine; not in _source"),
    }
)
