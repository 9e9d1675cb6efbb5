-- The tables of experience: projects, staged knowledge, checkpoints and patterns.

-- Columns with values of documents or of people have no statistics: these would contain values,
-- also of deleted rows.

CREATE TABLE rag_catalog.experience_merges (
    tenant text NOT NULL,
    id uuid NOT NULL,
    entry_id uuid NOT NULL,
    other_id uuid,
    pattern_id uuid NOT NULL,
    former_id uuid,
    way varchar(20) NOT NULL,
    problem_cosine double precision,
    solution_cosine double precision,
    bounds jsonb DEFAULT '{}' NOT NULL,
    merged_by text NOT NULL,
    merged_at timestamptz DEFAULT now() NOT NULL,
    split_at timestamptz,
    split_by text,
    CONSTRAINT ck_experience_merges_ck_experience_merges_way CHECK (way IN ('exact', 'near',
        'manual')),
    CONSTRAINT pk_experience_merges PRIMARY KEY (tenant, id),
    CONSTRAINT fk_experience_merges_tenant FOREIGN KEY (tenant)
        REFERENCES rag_catalog.tenants(id) ON DELETE CASCADE
);
CREATE INDEX ix_experience_merges_tenant_entry_id ON rag_catalog.experience_merges (tenant,
    entry_id);
CREATE INDEX ix_experience_merges_tenant_pattern_id ON rag_catalog.experience_merges (tenant,
    pattern_id);
ALTER TABLE rag_catalog.experience_merges
    ALTER COLUMN merged_by SET STATISTICS 0,
    ALTER COLUMN split_by SET STATISTICS 0;

CREATE TABLE rag_catalog.experience_patterns (
    tenant text NOT NULL,
    id uuid NOT NULL,
    problem_id uuid NOT NULL,
    merged_into uuid,
    created_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_experience_patterns PRIMARY KEY (tenant, id),
    CONSTRAINT fk_experience_patterns_tenant FOREIGN KEY (tenant)
        REFERENCES rag_catalog.tenants(id) ON DELETE CASCADE
);
CREATE INDEX ix_experience_patterns_tenant_merged_into
    ON rag_catalog.experience_patterns (tenant, merged_into);

CREATE TABLE rag_catalog.experience_questions (
    tenant text NOT NULL,
    id uuid NOT NULL,
    use varchar(20) NOT NULL,
    asked_by text,
    asked_at timestamptz DEFAULT now() NOT NULL,
    patterns jsonb DEFAULT '[]' NOT NULL,
    CONSTRAINT pk_experience_questions PRIMARY KEY (tenant, id),
    CONSTRAINT fk_experience_questions_tenant FOREIGN KEY (tenant)
        REFERENCES rag_catalog.tenants(id) ON DELETE CASCADE
);
CREATE INDEX ix_experience_questions_tenant_asked_at ON rag_catalog.experience_questions (tenant,
    asked_at);
ALTER TABLE rag_catalog.experience_questions ALTER COLUMN asked_by SET STATISTICS 0;

CREATE TABLE rag_catalog.experience_feedback (
    tenant text NOT NULL,
    query_id uuid NOT NULL,
    pattern_id uuid NOT NULL,
    outcome varchar(20) NOT NULL,
    given_by text,
    given_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT ck_experience_feedback_ck_experience_feedback_outcome CHECK (outcome IN ('helped',
        'did_not_help')),
    CONSTRAINT pk_experience_feedback PRIMARY KEY (tenant, query_id, pattern_id),
    CONSTRAINT fk_experience_feedback_tenant FOREIGN KEY (tenant)
        REFERENCES rag_catalog.tenants(id) ON DELETE CASCADE,
    CONSTRAINT fk_experience_feedback_tenant_query_id FOREIGN KEY (tenant, query_id)
        REFERENCES rag_catalog.experience_questions(tenant, id) ON DELETE CASCADE
);
CREATE INDEX ix_experience_feedback_tenant_pattern_id ON rag_catalog.experience_feedback (tenant,
    pattern_id);
ALTER TABLE rag_catalog.experience_feedback ALTER COLUMN given_by SET STATISTICS 0;

CREATE TABLE rag_catalog.projects (
    tenant text NOT NULL,
    id uuid NOT NULL,
    name text NOT NULL,
    state text NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    owner_token text,
    owner_organization text,
    CONSTRAINT ck_projects_state CHECK (state IN ('active', 'completed', 'cancelled')),
    CONSTRAINT pk_projects PRIMARY KEY (tenant, id),
    CONSTRAINT fk_projects_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE
);
ALTER TABLE rag_catalog.projects
    ALTER COLUMN name SET STATISTICS 0,
    ALTER COLUMN owner_token SET STATISTICS 0,
    ALTER COLUMN owner_organization SET STATISTICS 0;

CREATE TABLE rag_catalog.checkpoints (
    tenant text NOT NULL,
    id uuid NOT NULL,
    checkpoint_type varchar(50) NOT NULL,
    project_id uuid,
    external_id text,
    requested_by text,
    requested_at timestamptz DEFAULT now() NOT NULL,
    state text NOT NULL,
    staged integer NOT NULL,
    embedded integer DEFAULT 0 NOT NULL,
    merged integer DEFAULT 0 NOT NULL,
    failed integer DEFAULT 0 NOT NULL,
    error text,
    processed_at timestamptz,
    CONSTRAINT ck_checkpoints_state CHECK (state IN ('waiting', 'running', 'done', 'stopped')),
    CONSTRAINT pk_checkpoints PRIMARY KEY (tenant, id),
    CONSTRAINT fk_checkpoints_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE,
    CONSTRAINT fk_checkpoints_tenant_project_id FOREIGN KEY (tenant, project_id)
        REFERENCES rag_catalog.projects(tenant, id)
);
CREATE INDEX ix_checkpoints_open ON rag_catalog.checkpoints (tenant) WHERE (state IN ('waiting',
    'running'));
CREATE UNIQUE INDEX uq_checkpoints_external_id ON rag_catalog.checkpoints (tenant, external_id);
ALTER TABLE rag_catalog.checkpoints
    ALTER COLUMN external_id SET STATISTICS 0,
    ALTER COLUMN requested_by SET STATISTICS 0,
    ALTER COLUMN error SET STATISTICS 0;

CREATE TABLE rag_catalog.knowledge_staging (
    id uuid DEFAULT gen_random_uuid() NOT NULL,
    tenant text NOT NULL,
    entry_type varchar(50) NOT NULL,
    project_id uuid,
    agent_type varchar(100) NOT NULL,
    task_type varchar(100),
    technology varchar(100),
    failure_description text,
    error_message text,
    solution_steps text,
    gate_type varchar(50),
    human_feedback text,
    revision_approach text,
    approved_approach text,
    success_verified boolean DEFAULT false NOT NULL,
    embedded boolean DEFAULT false NOT NULL,
    "timestamp" timestamptz DEFAULT now() NOT NULL,
    embedded_at timestamptz,
    when_to_try text,
    about jsonb DEFAULT '[]' NOT NULL,
    external_id text,
    content_key text,
    contributed_by text,
    masked text[] DEFAULT '{}'::text[] NOT NULL,
    checkpoint_id uuid,
    document_id text,
    exact_key text,
    problem_key text,
    pattern_id uuid,
    home_id uuid,
    kept_texts text[] DEFAULT '{}'::text[] NOT NULL,
    failure text,
    record_version integer DEFAULT 1 NOT NULL,
    CONSTRAINT ck_knowledge_staging_entry_type CHECK (((entry_type = 'failure_solution')
        AND (failure_description IS NOT NULL)) OR ((entry_type = 'gate_rejection')
        AND (gate_type IS NOT NULL)) OR ((entry_type = 'gate_approval')
        AND (gate_type IS NOT NULL))),
    CONSTRAINT pk_knowledge_staging PRIMARY KEY (id),
    CONSTRAINT fk_knowledge_staging_tenant FOREIGN KEY (tenant)
        REFERENCES rag_catalog.tenants(id) ON DELETE CASCADE,
    CONSTRAINT fk_knowledge_staging_tenant_project_id FOREIGN KEY (tenant, project_id)
        REFERENCES rag_catalog.projects(tenant, id)
);
CREATE INDEX ix_knowledge_staging_checkpoint ON rag_catalog.knowledge_staging (tenant,
    checkpoint_id);
CREATE INDEX ix_knowledge_staging_document ON rag_catalog.knowledge_staging (tenant, document_id);
CREATE INDEX ix_knowledge_staging_exact ON rag_catalog.knowledge_staging (tenant, exact_key);
CREATE INDEX ix_knowledge_staging_left ON rag_catalog.knowledge_staging (tenant,
    checkpoint_id) WHERE ((checkpoint_id IS NOT NULL) AND (NOT embedded) AND (failure IS NULL));
CREATE INDEX ix_knowledge_staging_pattern ON rag_catalog.knowledge_staging (tenant, pattern_id);
CREATE INDEX ix_knowledge_staging_problem ON rag_catalog.knowledge_staging (tenant, problem_key);
CREATE INDEX ix_knowledge_staging_record_version ON rag_catalog.knowledge_staging (tenant,
    record_version);
CREATE INDEX ix_knowledge_staging_tenant_embedded ON rag_catalog.knowledge_staging (tenant,
    embedded);
CREATE INDEX ix_knowledge_staging_tenant_project_id ON rag_catalog.knowledge_staging (tenant,
    project_id);
CREATE UNIQUE INDEX uq_knowledge_staging_external_id ON rag_catalog.knowledge_staging (tenant,
    project_id, external_id);
ALTER TABLE rag_catalog.knowledge_staging
    ALTER COLUMN agent_type SET STATISTICS 0,
    ALTER COLUMN task_type SET STATISTICS 0,
    ALTER COLUMN technology SET STATISTICS 0,
    ALTER COLUMN failure_description SET STATISTICS 0,
    ALTER COLUMN error_message SET STATISTICS 0,
    ALTER COLUMN solution_steps SET STATISTICS 0,
    ALTER COLUMN gate_type SET STATISTICS 0,
    ALTER COLUMN human_feedback SET STATISTICS 0,
    ALTER COLUMN revision_approach SET STATISTICS 0,
    ALTER COLUMN approved_approach SET STATISTICS 0,
    ALTER COLUMN when_to_try SET STATISTICS 0,
    ALTER COLUMN about SET STATISTICS 0,
    ALTER COLUMN external_id SET STATISTICS 0,
    ALTER COLUMN contributed_by SET STATISTICS 0,
    ALTER COLUMN failure SET STATISTICS 0;

CREATE FUNCTION rag_catalog.forget_entry() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    DELETE FROM rag_catalog.knowledge_staging
    WHERE tenant = OLD.tenant AND document_id = OLD.document_id;
    RETURN NULL;
END
$$;

CREATE TRIGGER forget_entry AFTER DELETE ON rag_catalog.source_records FOR EACH ROW
    EXECUTE FUNCTION rag_catalog.forget_entry();
