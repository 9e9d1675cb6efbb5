-- The tables of code memory: definitions, relations and runs of agents.

-- Columns with values of documents or of people have no statistics: these would contain values,
-- also of deleted rows.

CREATE TABLE rag_catalog.code_runs (
    tenant text NOT NULL,
    run_id text NOT NULL,
    rag_enabled boolean NOT NULL,
    model text,
    updated_by text,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_code_runs PRIMARY KEY (tenant, run_id),
    CONSTRAINT fk_code_runs_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE
);
ALTER TABLE rag_catalog.code_runs
    ALTER COLUMN run_id SET STATISTICS 0,
    ALTER COLUMN model SET STATISTICS 0,
    ALTER COLUMN updated_by SET STATISTICS 0;

CREATE TABLE rag_catalog.code_run_events (
    tenant text NOT NULL,
    run_id text NOT NULL,
    external_id text NOT NULL,
    kind text NOT NULL,
    document_id text NOT NULL,
    received_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT ck_code_run_events_ck_code_run_events_kind CHECK (kind IN ('file_created',
        'file_updated', 'file_deleted', 'final_summary')),
    CONSTRAINT pk_code_run_events PRIMARY KEY (tenant, run_id, external_id),
    CONSTRAINT fk_code_run_events_tenant FOREIGN KEY (tenant)
        REFERENCES rag_catalog.tenants(id) ON DELETE CASCADE,
    CONSTRAINT fk_code_run_events_tenant_run_id FOREIGN KEY (tenant, run_id)
        REFERENCES rag_catalog.code_runs(tenant, run_id) ON DELETE CASCADE
);
ALTER TABLE rag_catalog.code_run_events
    ALTER COLUMN run_id SET STATISTICS 0,
    ALTER COLUMN external_id SET STATISTICS 0;

CREATE TABLE rag_catalog.derivations (
    tenant text NOT NULL,
    source text NOT NULL,
    fingerprint text NOT NULL,
    unresolved jsonb DEFAULT '[]' NOT NULL,
    CONSTRAINT pk_derivations PRIMARY KEY (tenant, source),
    CONSTRAINT fk_derivations_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE
);
ALTER TABLE rag_catalog.derivations ALTER COLUMN unresolved SET STATISTICS 0;

CREATE TABLE rag_catalog.document_kinds (
    tenant text NOT NULL,
    document_id text NOT NULL,
    kinds jsonb DEFAULT '{}' NOT NULL,
    CONSTRAINT pk_document_kinds PRIMARY KEY (tenant, document_id),
    CONSTRAINT fk_document_kinds_tenant_document_id FOREIGN KEY (tenant, document_id)
        REFERENCES rag_catalog.documents(tenant, document_id) ON DELETE CASCADE
);
ALTER TABLE rag_catalog.document_kinds ALTER COLUMN kinds SET STATISTICS 0;

CREATE TABLE rag_catalog.edges (
    tenant text NOT NULL,
    chunk_set_key text NOT NULL,
    "position" integer NOT NULL,
    kind text NOT NULL,
    stated_of text NOT NULL,
    target text NOT NULL,
    how text NOT NULL,
    confidence real NOT NULL,
    evidence text NOT NULL,
    line_start integer NOT NULL,
    line_end integer NOT NULL,
    path text,
    CONSTRAINT pk_edges PRIMARY KEY (tenant, chunk_set_key, "position"),
    CONSTRAINT fk_edges_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE
);
CREATE INDEX ix_edges_tenant_stated_of ON rag_catalog.edges (tenant, stated_of);
CREATE INDEX ix_edges_tenant_target ON rag_catalog.edges (tenant, target);
ALTER TABLE rag_catalog.edges
    ALTER COLUMN stated_of SET STATISTICS 0,
    ALTER COLUMN target SET STATISTICS 0,
    ALTER COLUMN evidence SET STATISTICS 0,
    ALTER COLUMN path SET STATISTICS 0;

CREATE TABLE rag_catalog.name_uses (
    tenant text NOT NULL,
    chunk_set_key text NOT NULL,
    numbers integer[] NOT NULL,
    names text NOT NULL,
    CONSTRAINT pk_name_uses PRIMARY KEY (tenant, chunk_set_key),
    CONSTRAINT fk_name_uses_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE
);
CREATE INDEX ix_name_uses_numbers ON rag_catalog.name_uses USING gin (numbers);
ALTER TABLE rag_catalog.name_uses
    ALTER COLUMN numbers SET STATISTICS 0,
    ALTER COLUMN names SET STATISTICS 0;

CREATE TABLE rag_catalog.relation_change_totals (
    tenant text NOT NULL,
    nonce numeric DEFAULT '0'::numeric NOT NULL,
    rows_nonce numeric DEFAULT '0'::numeric NOT NULL,
    CONSTRAINT pk_relation_change_totals PRIMARY KEY (tenant),
    CONSTRAINT fk_relation_change_totals_tenant FOREIGN KEY (tenant)
        REFERENCES rag_catalog.tenants(id) ON DELETE CASCADE
);

CREATE TABLE rag_catalog.relation_changes (
    tenant text NOT NULL,
    transaction bigint NOT NULL,
    of_rows boolean NOT NULL,
    nonce bigint NOT NULL,
    CONSTRAINT pk_relation_changes PRIMARY KEY (tenant, transaction, of_rows),
    CONSTRAINT fk_relation_changes_tenant FOREIGN KEY (tenant)
        REFERENCES rag_catalog.tenants(id) ON DELETE CASCADE
);

CREATE TABLE rag_catalog.symbols (
    tenant text NOT NULL,
    chunk_set_key text NOT NULL,
    "position" integer NOT NULL,
    symbol text NOT NULL,
    short text NOT NULL,
    role text NOT NULL,
    public boolean NOT NULL,
    content_hash text,
    line_start integer NOT NULL,
    line_end integer NOT NULL,
    CONSTRAINT pk_symbols PRIMARY KEY (tenant, chunk_set_key, "position"),
    CONSTRAINT fk_symbols_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE
);
CREATE INDEX ix_symbols_tenant_last_part ON rag_catalog.symbols (tenant,
    translate(regexp_replace(short, '^.*[.]'::text, ''::text), '_-?!$='::text, ''::text));
ALTER INDEX rag_catalog.ix_symbols_tenant_last_part ALTER COLUMN 2 SET STATISTICS 0;
CREATE INDEX ix_symbols_tenant_short ON rag_catalog.symbols (tenant, short);
CREATE INDEX ix_symbols_tenant_symbol ON rag_catalog.symbols (tenant, symbol);
ALTER TABLE rag_catalog.symbols
    ALTER COLUMN symbol SET STATISTICS 0,
    ALTER COLUMN short SET STATISTICS 0;

CREATE FUNCTION rag_catalog.add_up_relation_changes(changed text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    -- Whoever adds up already need not be waited for.
    IF NOT pg_try_advisory_xact_lock(hashtext('relation_changes'), hashtext(changed)) THEN
        RETURN;
    END IF;
    INSERT INTO rag_catalog.relation_change_totals (tenant) VALUES (changed) ON CONFLICT DO NOTHING;
    WITH added AS (
        DELETE FROM rag_catalog.relation_changes WHERE tenant = changed RETURNING of_rows, nonce
    )
    UPDATE rag_catalog.relation_change_totals AS t SET
        nonce = t.nonce + (SELECT coalesce(sum(a.nonce), 0) FROM added AS a),
        rows_nonce = t.rows_nonce
            + (SELECT coalesce(sum(a.nonce) FILTER (WHERE a.of_rows), 0) FROM added AS a)
    WHERE t.tenant = changed;
END
$$;

CREATE FUNCTION rag_catalog.count_relation_change(changed text, of_rows boolean) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    counted text := changed || ' ' || of_rows || ' ' || pg_current_xact_id();
BEGIN
    -- Once in a transaction: a sync changes thousands of rows.
    IF current_setting('rag_catalog.counted', true) = counted THEN
        RETURN;
    END IF;
    PERFORM set_config('rag_catalog.counted', counted, true);
    -- The rows of a tenant that is removed go with it.
    IF NOT EXISTS (SELECT FROM rag_catalog.tenants WHERE id = changed) THEN
        RETURN;
    END IF;
    INSERT INTO rag_catalog.relation_changes (tenant, transaction, of_rows, nonce)
    VALUES (
        changed,
        pg_current_xact_id()::text::bigint,
        of_rows,
        hashtextextended(gen_random_uuid()::text, 0)
    )
    ON CONFLICT DO NOTHING;
    IF random() * 64 < 1 AND current_setting('transaction_isolation') = 'read committed' THEN
        PERFORM rag_catalog.add_up_relation_changes(changed);
    END IF;
END
$$;

CREATE FUNCTION rag_catalog.forget_code() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM rag_catalog.document_index
        WHERE tenant = OLD.tenant AND chunk_set_key = OLD.chunk_set_key
    ) THEN
        DELETE FROM rag_catalog.symbols
        WHERE tenant = OLD.tenant AND chunk_set_key = OLD.chunk_set_key;
        DELETE FROM rag_catalog.edges
        WHERE tenant = OLD.tenant AND chunk_set_key = OLD.chunk_set_key;
        DELETE FROM rag_catalog.name_uses
        WHERE tenant = OLD.tenant AND chunk_set_key = OLD.chunk_set_key;
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION rag_catalog.relation_rows_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM rag_catalog.count_relation_change(one.tenant, true)
    FROM (SELECT DISTINCT tenant FROM changed) AS one;
    RETURN NULL;
END
$$;

CREATE FUNCTION rag_catalog.relations_changed() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    PERFORM rag_catalog.count_relation_change(coalesce(NEW.tenant, OLD.tenant), false);
    RETURN NULL;
END
$$;

CREATE TRIGGER forget_changed_code AFTER UPDATE OF chunk_set_key
    ON rag_catalog.document_index FOR EACH ROW WHEN (((old.chunk_set_key IS NOT NULL)
    AND (old.chunk_set_key IS DISTINCT FROM new.chunk_set_key)))
    EXECUTE FUNCTION rag_catalog.forget_code();
CREATE TRIGGER forget_code AFTER DELETE ON rag_catalog.document_index FOR EACH ROW
    WHEN ((old.chunk_set_key IS NOT NULL)) EXECUTE FUNCTION rag_catalog.forget_code();
CREATE TRIGGER relation_rows_changed AFTER UPDATE
    ON rag_catalog.edges REFERENCING NEW TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION rag_catalog.relation_rows_changed();
CREATE TRIGGER relation_rows_changed AFTER UPDATE
    ON rag_catalog.symbols REFERENCING NEW TABLE AS changed FOR EACH STATEMENT
    EXECUTE FUNCTION rag_catalog.relation_rows_changed();
CREATE TRIGGER relations_changed_by_delete AFTER DELETE ON rag_catalog.document_index
    FOR EACH ROW WHEN ((old.indexed_key IS NOT NULL))
    EXECUTE FUNCTION rag_catalog.relations_changed();
CREATE TRIGGER relations_changed_by_delete AFTER DELETE ON rag_catalog.document_kinds
    FOR EACH ROW WHEN (true) EXECUTE FUNCTION rag_catalog.relations_changed();
CREATE TRIGGER relations_changed_by_delete AFTER DELETE ON rag_catalog.documents
    FOR EACH ROW WHEN ((old.status <> 'DELETED'::text))
    EXECUTE FUNCTION rag_catalog.relations_changed();
CREATE TRIGGER relations_changed_by_insert AFTER INSERT ON rag_catalog.document_index
    FOR EACH ROW WHEN ((new.indexed_key IS NOT NULL))
    EXECUTE FUNCTION rag_catalog.relations_changed();
CREATE TRIGGER relations_changed_by_insert AFTER INSERT ON rag_catalog.document_kinds
    FOR EACH ROW WHEN (true) EXECUTE FUNCTION rag_catalog.relations_changed();
CREATE TRIGGER relations_changed_by_update AFTER UPDATE ON rag_catalog.document_index
    FOR EACH ROW WHEN (((old.chunk_set_key IS DISTINCT FROM new.chunk_set_key)
    OR ((old.indexed_key IS NULL) <> (new.indexed_key IS NULL))))
    EXECUTE FUNCTION rag_catalog.relations_changed();
CREATE TRIGGER relations_changed_by_update AFTER UPDATE ON rag_catalog.document_kinds
    FOR EACH ROW WHEN ((old.kinds IS DISTINCT FROM new.kinds))
    EXECUTE FUNCTION rag_catalog.relations_changed();
CREATE TRIGGER relations_changed_by_update AFTER UPDATE ON rag_catalog.documents
    FOR EACH ROW WHEN (((old.uri IS DISTINCT FROM new.uri)
    OR (old.source IS DISTINCT FROM new.source)
    OR (old.source_type IS DISTINCT FROM new.source_type)
    OR (old.access_scope IS DISTINCT FROM new.access_scope)
    OR ((old.status = 'DELETED'::text) <> (new.status = 'DELETED'::text))))
    EXECUTE FUNCTION rag_catalog.relations_changed();
