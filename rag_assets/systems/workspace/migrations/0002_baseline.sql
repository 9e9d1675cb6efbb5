-- The tables of pulled sources: how far their queries were followed, and rows that were set aside.

-- Columns with values of documents or of people have no statistics: these would contain values,
-- also of deleted rows.

CREATE TABLE rag_catalog.pulled_queries (
    tenant text NOT NULL,
    source text NOT NULL,
    source_type text NOT NULL,
    query_key text NOT NULL,
    watermark timestamptz NOT NULL,
    CONSTRAINT pk_pulled_queries PRIMARY KEY (tenant, source, source_type),
    CONSTRAINT fk_pulled_queries_tenant FOREIGN KEY (tenant)
        REFERENCES rag_catalog.tenants(id) ON DELETE CASCADE
);

CREATE TABLE rag_catalog.pulled_sources (
    tenant text NOT NULL,
    source text NOT NULL,
    pulled_at timestamptz,
    seconds double precision,
    scanned_at timestamptz,
    next_at timestamptz DEFAULT now() NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    error text,
    held_deletions integer DEFAULT 0 NOT NULL,
    CONSTRAINT pk_pulled_sources PRIMARY KEY (tenant, source),
    CONSTRAINT fk_pulled_sources_tenant FOREIGN KEY (tenant)
        REFERENCES rag_catalog.tenants(id) ON DELETE CASCADE
);
ALTER TABLE rag_catalog.pulled_sources ALTER COLUMN error SET STATISTICS 0;

CREATE TABLE rag_catalog.pulled_rows (
    tenant text NOT NULL,
    source text NOT NULL,
    source_type text NOT NULL,
    row_key text NOT NULL,
    shown text NOT NULL,
    field text NOT NULL,
    problem text NOT NULL,
    set_aside_at timestamptz DEFAULT now() NOT NULL,
    seen_at timestamptz,
    awaited_page text,
    CONSTRAINT pk_pulled_rows PRIMARY KEY (tenant, source, source_type, row_key),
    CONSTRAINT fk_pulled_rows_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE,
    CONSTRAINT fk_pulled_rows_tenant_source FOREIGN KEY (tenant, source)
        REFERENCES rag_catalog.pulled_sources(tenant, source) ON DELETE CASCADE
);
ALTER TABLE rag_catalog.pulled_rows
    ALTER COLUMN shown SET STATISTICS 0,
    ALTER COLUMN field SET STATISTICS 0,
    ALTER COLUMN problem SET STATISTICS 0,
    ALTER COLUMN awaited_page SET STATISTICS 0;
