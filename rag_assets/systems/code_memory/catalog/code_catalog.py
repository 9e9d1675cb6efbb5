"""The tables of code memory in one object, which is created once for each catalog."""

from __future__ import annotations

from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import Database
from rag_assets.systems.code_memory.catalog.derivations import DerivationTable, KindTable
from rag_assets.systems.code_memory.catalog.relation_rows import RelationRowTable
from rag_assets.systems.code_memory.catalog.relations import RelationTable


class CodeCatalog:
    """The queries on the tables of code memory, with one attribute per table or group of tables."""

    def __init__(self, database: Database) -> None:
        self.kinds = KindTable(database)
        self.relations = RelationTable(database)
        self.relation_rows = RelationRowTable(database)
        self.derivations = DerivationTable(database)


def get_code_catalog(catalog: Catalog) -> CodeCatalog:
    """Return the queries on the tables of code memory in a catalog, created once per catalog."""
    return catalog.of_system(CodeCatalog)
