"""Tombstones: hashes of pruned or purged documents whose content may still be in a source.

The journal of security changes, which the stores keep outside the catalog, also contains the
tombstones of purged documents, encrypted with a key of the catalog. So a catalog that was restored
from a dump made before a purge can still prevent the documents from returning.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import os
from collections.abc import Sequence
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy import Connection, func, select
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.storage.catalog.database import TenantRef, among
from rag_assets.storage.catalog.receipts import document_hashes, receipt_key
from rag_assets.storage.catalog.tables import documents, tombstones

_NONCE_BYTES: Final = 12


def bury(connection: Connection, ref: TenantRef, document_ids: Sequence[str]) -> None:
    """Add tombstones with the documents' current contents."""
    content = func.coalesce(documents.c.content_sha256, "")
    buried = select(documents.c.tenant, documents.c.document_id, content).where(
        documents.c.tenant == ref.id, among(documents.c.document_id, document_ids)
    )
    new = upsert(tombstones).from_select(["tenant", "document_id", "content_sha256"], buried)
    connection.execute(
        new.on_conflict_do_update(
            index_elements=["tenant", "document_id"],
            set_={
                "content_sha256": new.excluded.content_sha256,
                "pruned_at": func.now(),
                "invalidated": False,
            },
        )
    )


def seal(connection: Connection, ref: TenantRef, document_ids: Sequence[str]) -> list[str]:
    """Return the journal's entries for purged documents: keyed hashes, encrypted tombstones."""
    query = select(tombstones.c.document_id, tombstones.c.content_sha256).where(
        tombstones.c.tenant == ref.id, among(tombstones.c.document_id, document_ids)
    )
    contents = {row.document_id: row.content_sha256 for row in connection.execute(query)}
    cipher = _cipher(connection)
    sealed = []
    for hash_, id_ in zip(document_hashes(connection, document_ids), document_ids, strict=True):
        nonce = os.urandom(_NONCE_BYTES)
        text = json.dumps([id_, contents.get(id_, "")]).encode()
        ciphertext = nonce + cipher.encrypt(nonce, text, ref.id.encode())
        sealed.append(f"{hash_}.{base64.urlsafe_b64encode(ciphertext).decode()}")
    return sealed


def hash_of(sealed: str) -> str:
    """Return the keyed hash of a document in a journal entry."""
    return sealed.partition(".")[0]


def bury_sealed(connection: Connection, ref: TenantRef, sealed: Sequence[str]) -> int:
    """Add the tombstones that a journal has kept; return how many could be decrypted.

    The journal of another catalog, or of an earlier version, has no tombstones for this catalog.
    """
    cipher = _cipher(connection)
    rows = []
    for one in sealed:
        try:
            ciphertext = base64.urlsafe_b64decode(one.partition(".")[2])
            nonce, rest = ciphertext[:_NONCE_BYTES], ciphertext[_NONCE_BYTES:]
            id_, content = json.loads(cipher.decrypt(nonce, rest, ref.id.encode()))
        except (binascii.Error, ValueError, InvalidTag):
            continue
        rows.append({"tenant": ref.id, "document_id": id_, "content_sha256": content})
    if rows:
        keep_out = upsert(tombstones).on_conflict_do_update(
            index_elements=["tenant", "document_id"], set_={"invalidated": False}
        )
        connection.execute(keep_out, rows)
    return len(rows)


def _cipher(connection: Connection) -> AESGCM:
    return AESGCM(hmac.digest(receipt_key(connection), b"tombstones of the journal", "sha256"))
