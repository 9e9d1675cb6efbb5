-- The tables of team guidelines: their texts and rules.

-- Columns with values of documents or of people have no statistics: these would contain values,
-- also of deleted rows.

CREATE TABLE rag_catalog.guideline_rules (
    tenant text NOT NULL,
    document_id text NOT NULL,
    parse_key text NOT NULL,
    is_always boolean NOT NULL,
    paths text NOT NULL,
    CONSTRAINT pk_guideline_rules PRIMARY KEY (tenant, document_id),
    CONSTRAINT fk_guideline_rules_tenant FOREIGN KEY (tenant)
        REFERENCES rag_catalog.tenants(id) ON DELETE CASCADE
);
ALTER TABLE rag_catalog.guideline_rules ALTER COLUMN paths SET STATISTICS 0;

CREATE TABLE rag_catalog.guideline_texts (
    tenant text NOT NULL,
    text text NOT NULL,
    updated_by text NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_guideline_texts PRIMARY KEY (tenant),
    CONSTRAINT fk_guideline_texts_tenant FOREIGN KEY (tenant)
        REFERENCES rag_catalog.tenants(id) ON DELETE CASCADE
);
ALTER TABLE rag_catalog.guideline_texts
    ALTER COLUMN text SET STATISTICS 0,
    ALTER COLUMN updated_by SET STATISTICS 0;

CREATE FUNCTION rag_catalog.forget_guideline_rule() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    DELETE FROM rag_catalog.guideline_rules
    WHERE tenant = OLD.tenant AND document_id = OLD.document_id;
    RETURN NULL;
END
$$;

CREATE TRIGGER forget_guideline_rule AFTER DELETE ON rag_catalog.uploads FOR EACH ROW
    EXECUTE FUNCTION rag_catalog.forget_guideline_rule();
