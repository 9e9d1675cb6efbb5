-- The tables of the catalog, with their functions and triggers.

-- Columns with values of documents or of people have no statistics: these would contain values,
-- also of deleted rows.

CREATE SEQUENCE rag_catalog.incarnations;
CREATE SEQUENCE rag_catalog.page_moves;
CREATE SEQUENCE rag_catalog.record_revisions;

CREATE TABLE rag_catalog.tenants (
    id text NOT NULL,
    incarnation bigint NOT NULL,
    state text NOT NULL,
    origin text NOT NULL,
    config jsonb DEFAULT '{}' NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    profile text DEFAULT 'documents' NOT NULL,
    organization text,
    project text,
    of_project boolean DEFAULT false NOT NULL,
    scanned jsonb DEFAULT '{}' NOT NULL,
    home uuid,
    CONSTRAINT ck_tenants_origin CHECK (origin IN ('file', 'api', 'agents')),
    CONSTRAINT ck_tenants_state CHECK (state IN ('ACTIVE', 'DISABLED', 'REMOVING')),
    CONSTRAINT pk_tenants PRIMARY KEY (id)
);
CREATE UNIQUE INDEX uq_tenants_organization_project_profile ON rag_catalog.tenants (organization,
    project, profile) WHERE of_project;
ALTER TABLE rag_catalog.tenants
    ALTER COLUMN config SET STATISTICS 0,
    ALTER COLUMN scanned SET STATISTICS 0;

CREATE TABLE rag_catalog.access_scopes (
    tenant text NOT NULL,
    scope text NOT NULL,
    principal text NOT NULL,
    granted_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_access_scopes PRIMARY KEY (tenant, scope, principal),
    CONSTRAINT fk_access_scopes_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE
);

CREATE TABLE rag_catalog.catalog_marks (
    tenant text NOT NULL,
    mark bigint NOT NULL,
    tag text,
    kept boolean DEFAULT false NOT NULL,
    CONSTRAINT pk_catalog_marks PRIMARY KEY (tenant),
    CONSTRAINT fk_catalog_marks_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE
);

CREATE TABLE rag_catalog.check_results (
    tenant text NOT NULL,
    asset text NOT NULL,
    name text NOT NULL,
    passed boolean,
    severity text,
    description text,
    evaluated_at timestamptz,
    error text,
    CONSTRAINT pk_check_results PRIMARY KEY (tenant, asset, name),
    CONSTRAINT fk_check_results_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE
);
ALTER TABLE rag_catalog.check_results
    ALTER COLUMN description SET STATISTICS 0,
    ALTER COLUMN error SET STATISTICS 0;

CREATE TABLE rag_catalog.dagster_histories (
    tenant text NOT NULL,
    incarnation integer NOT NULL,
    instance text NOT NULL,
    place text NOT NULL,
    last_run_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_dagster_histories PRIMARY KEY (tenant, incarnation, instance)
);

CREATE TABLE rag_catalog.documents (
    tenant text NOT NULL,
    document_id text NOT NULL,
    source text NOT NULL,
    source_type text NOT NULL,
    path bytea NOT NULL,
    uri text NOT NULL,
    title text,
    media_type text,
    size bigint NOT NULL,
    mtime_ns bigint NOT NULL,
    ctime_ns bigint NOT NULL,
    inode numeric(20,0) NOT NULL,
    listed_at_ns bigint NOT NULL,
    content_sha256 text,
    access_scope text DEFAULT 'public' NOT NULL,
    tags text[] DEFAULT '{}'::text[] NOT NULL,
    metadata jsonb DEFAULT '{}' NOT NULL,
    document_key text NOT NULL,
    lane smallint DEFAULT '0'::smallint NOT NULL,
    status text NOT NULL,
    error_message text,
    failed_document_key text,
    failed_config_key text,
    attempts integer DEFAULT 0 NOT NULL,
    retry_at timestamptz,
    chunk_count integer DEFAULT 0 NOT NULL,
    dropped_count integer DEFAULT 0 NOT NULL,
    first_seen timestamptz DEFAULT now() NOT NULL,
    changed_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    modified_at timestamptz NOT NULL,
    said_title text,
    edition integer DEFAULT 0 NOT NULL,
    revision bigint,
    embedded_sha256 text,
    embedded_at timestamptz,
    error_kind text,
    version text,
    source_id text,
    page_uuid text,
    waiting_since timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT ck_documents_error_kind CHECK (error_kind IN ('unreadable', 'encrypted', 'empty',
        'scanned', 'unsupported', 'too-large', 'too-slow', 'too-complex', 'lost', 'changing',
        'credential', 'no-key', 'key-refused', 'cap-reached', 'provider-unavailable',
        'text-rejected', 'queued', 'installation', 'switched-off', 'source-unavailable',
        'key-unreadable', 'model-refused', 'quota-exhausted', 'address-refused',
        'request-refused', 'provider-limits', 'wrong-vectors', 'bad-response')),
    CONSTRAINT ck_documents_status CHECK (status IN ('PROCESSING', 'READY', 'FAILED', 'DELETED')),
    CONSTRAINT pk_documents PRIMARY KEY (tenant, document_id),
    CONSTRAINT fk_documents_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE
);
CREATE INDEX ix_documents_tenant_content_sha256 ON rag_catalog.documents (tenant, content_sha256);
CREATE INDEX ix_documents_tenant_embedded_sha256_embedded_at ON rag_catalog.documents (tenant,
    embedded_sha256, embedded_at);
CREATE INDEX ix_documents_tenant_page_uuid ON rag_catalog.documents (tenant, page_uuid)
    WHERE (page_uuid IS NOT NULL);
CREATE INDEX ix_documents_tenant_source_status ON rag_catalog.documents (tenant, source, status);
CREATE INDEX ix_documents_tenant_uri ON rag_catalog.documents (tenant, md5(uri));
ALTER INDEX rag_catalog.ix_documents_tenant_uri ALTER COLUMN 2 SET STATISTICS 0;
ALTER TABLE rag_catalog.documents
    ALTER COLUMN source_type SET STATISTICS 0,
    ALTER COLUMN path SET STATISTICS 0,
    ALTER COLUMN uri SET STATISTICS 0,
    ALTER COLUMN title SET STATISTICS 0,
    ALTER COLUMN tags SET STATISTICS 0,
    ALTER COLUMN metadata SET STATISTICS 0,
    ALTER COLUMN error_message SET STATISTICS 0,
    ALTER COLUMN said_title SET STATISTICS 0,
    ALTER COLUMN source_id SET STATISTICS 0,
    ALTER COLUMN page_uuid SET STATISTICS 0;

CREATE TABLE rag_catalog.embedder_probes (
    tenant text NOT NULL,
    embedder_id text NOT NULL,
    probes_key text NOT NULL,
    vectors bytea NOT NULL,
    stored_at timestamptz DEFAULT now() NOT NULL,
    measured_at timestamptz DEFAULT now() NOT NULL,
    distances double precision[] DEFAULT '{}'::double precision[] NOT NULL,
    passed boolean NOT NULL,
    CONSTRAINT pk_embedder_probes PRIMARY KEY (tenant, embedder_id),
    CONSTRAINT fk_embedder_probes_tenant FOREIGN KEY (tenant)
        REFERENCES rag_catalog.tenants(id) ON DELETE CASCADE
);

CREATE TABLE rag_catalog.embedding_batches (
    id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
    tenant text NOT NULL,
    tag text NOT NULL,
    batch_id text,
    embedder_id text NOT NULL,
    embedder jsonb DEFAULT '{}' NOT NULL,
    hashes bytea NOT NULL,
    texts integer NOT NULL,
    tokens bigint NOT NULL,
    cost numeric(18,8),
    state text NOT NULL,
    error text,
    submitted_at timestamptz DEFAULT now() NOT NULL,
    polled_at timestamptz DEFAULT now() NOT NULL,
    ended_at timestamptz,
    CONSTRAINT ck_embedding_batches_state CHECK (state IN ('SUBMITTING', 'UNDER_WAY', 'ENDED',
        'COLLECTED', 'FAILED')),
    CONSTRAINT pk_embedding_batches PRIMARY KEY (id),
    CONSTRAINT uq_embedding_batches_tag UNIQUE (tag),
    CONSTRAINT fk_embedding_batches_tenant FOREIGN KEY (tenant)
        REFERENCES rag_catalog.tenants(id) ON DELETE CASCADE
);
CREATE INDEX ix_embedding_batches_tenant_state ON rag_catalog.embedding_batches (tenant, state);
ALTER TABLE rag_catalog.embedding_batches ALTER COLUMN error SET STATISTICS 0;

CREATE TABLE rag_catalog.erasures (
    id uuid NOT NULL,
    tenant text NOT NULL,
    incarnation bigint NOT NULL,
    kind text NOT NULL,
    rule text NOT NULL,
    by text NOT NULL,
    at timestamptz DEFAULT now() NOT NULL,
    document_ids jsonb DEFAULT '[]' NOT NULL,
    parse_keys jsonb DEFAULT '[]' NOT NULL,
    chunk_set_keys jsonb DEFAULT '[]' NOT NULL,
    counts jsonb DEFAULT '{}' NOT NULL,
    blobs jsonb DEFAULT '[]' NOT NULL,
    progress jsonb DEFAULT '{}' NOT NULL,
    CONSTRAINT pk_erasures PRIMARY KEY (id)
);
CREATE INDEX ix_erasures_tenant ON rag_catalog.erasures (tenant);
ALTER TABLE rag_catalog.erasures
    ALTER COLUMN by SET STATISTICS 0,
    ALTER COLUMN document_ids SET STATISTICS 0,
    ALTER COLUMN parse_keys SET STATISTICS 0,
    ALTER COLUMN chunk_set_keys SET STATISTICS 0,
    ALTER COLUMN counts SET STATISTICS 0,
    ALTER COLUMN blobs SET STATISTICS 0,
    ALTER COLUMN progress SET STATISTICS 0;

CREATE TABLE rag_catalog.events (
    id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
    tenant text NOT NULL,
    kind text NOT NULL,
    at timestamptz DEFAULT now() NOT NULL,
    payload jsonb DEFAULT '{}' NOT NULL,
    CONSTRAINT pk_events PRIMARY KEY (id),
    CONSTRAINT fk_events_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE
);
CREATE INDEX ix_events_tenant_caller ON rag_catalog.events (tenant,
    ((payload ->> 'caller'::text)), id) WHERE ((payload ->> 'caller'::text) IS NOT NULL);
ALTER INDEX rag_catalog.ix_events_tenant_caller ALTER COLUMN 2 SET STATISTICS 0;
CREATE INDEX ix_events_tenant_id ON rag_catalog.events (tenant, id);
CREATE INDEX ix_events_tenant_kind_id ON rag_catalog.events (tenant, kind, id);
ALTER TABLE rag_catalog.events ALTER COLUMN payload SET STATISTICS 0;

CREATE TABLE rag_catalog.generations (
    tenant text NOT NULL,
    generation integer NOT NULL,
    generation_key text NOT NULL,
    index_name text NOT NULL,
    index_uuid text NOT NULL,
    embedder_id text NOT NULL,
    embedder jsonb DEFAULT '{}' NOT NULL,
    dimensions integer NOT NULL,
    state text NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    retired_at timestamptz,
    digest_key bytea,
    recipe jsonb,
    reason text,
    completed_at timestamptz,
    published_at timestamptz,
    checks jsonb,
    spent numeric(18,8) DEFAULT '0'::numeric NOT NULL,
    embedded_texts integer DEFAULT 0 NOT NULL,
    embedding_seconds double precision DEFAULT '0'::double precision NOT NULL,
    written_entries integer DEFAULT 0 NOT NULL,
    writing_seconds double precision DEFAULT '0'::double precision NOT NULL,
    vectors_beside text,
    vectors_retry_at timestamptz,
    thresholds jsonb DEFAULT '{}' NOT NULL,
    CONSTRAINT ck_generations_state CHECK (state IN ('BUILDING', 'COMPLETE', 'HELD', 'SERVING',
        'RETIRED', 'REMOVING')),
    CONSTRAINT ck_generations_vectors_beside CHECK (vectors_beside IN ('filling', 'answering')),
    CONSTRAINT pk_generations PRIMARY KEY (tenant, generation),
    CONSTRAINT fk_generations_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE
);
ALTER TABLE rag_catalog.generations
    ALTER COLUMN embedder SET STATISTICS 0,
    ALTER COLUMN digest_key SET STATISTICS 0,
    ALTER COLUMN recipe SET STATISTICS 0,
    ALTER COLUMN reason SET STATISTICS 0,
    ALTER COLUMN checks SET STATISTICS 0,
    ALTER COLUMN thresholds SET STATISTICS 0;

CREATE TABLE rag_catalog.document_index (
    tenant text NOT NULL,
    generation integer NOT NULL,
    document_id text NOT NULL,
    indexed_key text,
    document_key text,
    config_key text,
    chunk_count integer DEFAULT 0 NOT NULL,
    dirty boolean DEFAULT true NOT NULL,
    indexed_at timestamptz,
    parse_key text,
    chunk_set_key text,
    failed_document_key text,
    failed_config_key text,
    error_message text,
    retry_at timestamptz,
    token_count integer,
    content_sha256 text,
    CONSTRAINT pk_document_index PRIMARY KEY (tenant, generation, document_id),
    CONSTRAINT fk_document_index_tenant_generation FOREIGN KEY (tenant, generation)
        REFERENCES rag_catalog.generations(tenant, generation) ON DELETE CASCADE
);
CREATE INDEX ix_document_index_dirty ON rag_catalog.document_index (tenant, generation) WHERE dirty;
CREATE INDEX ix_document_index_tenant_chunk_set_key ON rag_catalog.document_index (tenant,
    chunk_set_key);
CREATE INDEX ix_document_index_waiting ON rag_catalog.document_index (tenant, generation)
    WHERE (retry_at IS NOT NULL);
ALTER TABLE rag_catalog.document_index ALTER COLUMN error_message SET STATISTICS 0;

CREATE TABLE rag_catalog.held_records (
    tenant text NOT NULL,
    document_id text NOT NULL,
    revision bigint NOT NULL,
    source text NOT NULL,
    source_type text NOT NULL,
    source_id text NOT NULL,
    text text NOT NULL,
    media_type text NOT NULL,
    content_sha256 text NOT NULL,
    said jsonb DEFAULT '{}' NOT NULL,
    modified_at timestamptz,
    changed_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_held_records PRIMARY KEY (tenant, document_id, revision),
    CONSTRAINT fk_held_records_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE
);
ALTER TABLE rag_catalog.held_records
    ALTER COLUMN source_type SET STATISTICS 0,
    ALTER COLUMN source_id SET STATISTICS 0,
    ALTER COLUMN text SET STATISTICS 0,
    ALTER COLUMN said SET STATISTICS 0;

CREATE TABLE rag_catalog.held_texts (
    tenant text NOT NULL,
    document_id text NOT NULL,
    parse_key text NOT NULL,
    chunk_set_key text NOT NULL,
    CONSTRAINT pk_held_texts PRIMARY KEY (tenant, document_id, parse_key, chunk_set_key),
    CONSTRAINT fk_held_texts_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE
);

CREATE TABLE rag_catalog.held_uploads (
    tenant text NOT NULL,
    document_id text NOT NULL,
    revision bigint NOT NULL,
    source text NOT NULL,
    file_name text NOT NULL,
    media_type text NOT NULL,
    size bigint NOT NULL,
    content_sha256 text NOT NULL,
    uploaded_by text NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_held_uploads PRIMARY KEY (tenant, document_id, revision),
    CONSTRAINT fk_held_uploads_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE
);
ALTER TABLE rag_catalog.held_uploads
    ALTER COLUMN file_name SET STATISTICS 0,
    ALTER COLUMN uploaded_by SET STATISTICS 0;

CREATE TABLE rag_catalog.holds (
    id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
    tenant text NOT NULL,
    source text,
    document_id text,
    reason text NOT NULL,
    by text NOT NULL,
    set_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_holds PRIMARY KEY (id),
    CONSTRAINT uq_holds_tenant_source_document_id UNIQUE NULLS NOT DISTINCT (tenant, source,
        document_id),
    CONSTRAINT fk_holds_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE
);
ALTER TABLE rag_catalog.holds
    ALTER COLUMN reason SET STATISTICS 0,
    ALTER COLUMN by SET STATISTICS 0;

CREATE TABLE rag_catalog.installation (
    singleton boolean DEFAULT true NOT NULL,
    id uuid NOT NULL,
    database text NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    epoch bigint DEFAULT '0'::bigint NOT NULL,
    epoch_kept boolean DEFAULT false NOT NULL,
    CONSTRAINT ck_installation_ck_installation_singleton CHECK (singleton),
    CONSTRAINT pk_installation PRIMARY KEY (singleton)
);

CREATE TABLE rag_catalog.installation_clock (
    singleton boolean DEFAULT true NOT NULL,
    trusted_at timestamptz DEFAULT now() NOT NULL,
    boot_id text,
    boot_seconds double precision,
    CONSTRAINT ck_installation_clock_ck_installation_clock_singleton CHECK (singleton),
    CONSTRAINT pk_installation_clock PRIMARY KEY (singleton)
);
INSERT INTO rag_catalog.installation_clock DEFAULT VALUES;

CREATE TABLE rag_catalog.installation_homes (
    id uuid NOT NULL,
    path text NOT NULL,
    host text NOT NULL,
    seen_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_installation_homes PRIMARY KEY (id)
);

CREATE TABLE rag_catalog.installation_places (
    kind text NOT NULL,
    address text NOT NULL,
    recorded_at timestamptz DEFAULT now() NOT NULL,
    left_at timestamptz,
    CONSTRAINT ck_installation_places_ck_installation_places_kind CHECK (kind IN ('lake',
        'blobs', 'index', 'vectors', 'cluster')),
    CONSTRAINT pk_installation_places PRIMARY KEY (kind, address)
);

CREATE TABLE rag_catalog.judged_questions (
    tenant text NOT NULL,
    question_id text NOT NULL,
    question text NOT NULL,
    kind text DEFAULT '' NOT NULL,
    relevant_from smallint NOT NULL,
    synthetic boolean DEFAULT false NOT NULL,
    judgements jsonb DEFAULT '[]' NOT NULL,
    pool text[] DEFAULT '{}'::text[] NOT NULL,
    judged_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_judged_questions PRIMARY KEY (tenant, question_id),
    CONSTRAINT fk_judged_questions_tenant FOREIGN KEY (tenant)
        REFERENCES rag_catalog.tenants(id) ON DELETE CASCADE
);
ALTER TABLE rag_catalog.judged_questions
    ALTER COLUMN question_id SET STATISTICS 0,
    ALTER COLUMN question SET STATISTICS 0,
    ALTER COLUMN kind SET STATISTICS 0,
    ALTER COLUMN judgements SET STATISTICS 0,
    ALTER COLUMN pool SET STATISTICS 0;

CREATE TABLE rag_catalog.moved_documents (
    tenant text NOT NULL,
    document_id text NOT NULL,
    successor text NOT NULL,
    CONSTRAINT pk_moved_documents PRIMARY KEY (tenant, document_id),
    CONSTRAINT fk_moved_documents_tenant_document_id FOREIGN KEY (tenant, document_id)
        REFERENCES rag_catalog.documents(tenant, document_id) ON DELETE CASCADE
);

CREATE TABLE rag_catalog.organizations (
    id text NOT NULL,
    rag_guidelines boolean DEFAULT false NOT NULL,
    chat_model text,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_organizations PRIMARY KEY (id)
);

CREATE TABLE rag_catalog.pages (
    tenant text NOT NULL,
    uuid text NOT NULL,
    kind text NOT NULL,
    parent text,
    inherit boolean NOT NULL,
    readers text[] DEFAULT '{}'::text[] NOT NULL,
    archived boolean DEFAULT false NOT NULL,
    ai boolean DEFAULT true NOT NULL,
    scope text NOT NULL,
    moved bigint,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT ck_pages_kind CHECK (kind IN ('root', 'page', 'database')),
    CONSTRAINT pk_pages PRIMARY KEY (tenant, uuid),
    CONSTRAINT fk_pages_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE
);
CREATE INDEX ix_pages_moved ON rag_catalog.pages (tenant) WHERE (moved IS NOT NULL);
CREATE INDEX ix_pages_tenant_parent ON rag_catalog.pages (tenant, parent);
ALTER TABLE rag_catalog.pages ALTER COLUMN readers SET STATISTICS 0;

CREATE TABLE rag_catalog.provider_keys (
    tenant text,
    provider text NOT NULL,
    nonce bytea NOT NULL,
    ciphertext bytea NOT NULL,
    master_key_id text NOT NULL,
    last_four text NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    last_used_at timestamptz,
    last_worked boolean,
    id bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
    organization text,
    CONSTRAINT ck_provider_keys_owner CHECK ((tenant IS NULL) <> (organization IS NULL)),
    CONSTRAINT pk_provider_keys PRIMARY KEY (id),
    CONSTRAINT uq_provider_keys_organization_provider UNIQUE (organization, provider),
    CONSTRAINT uq_provider_keys_tenant_provider UNIQUE (tenant, provider),
    CONSTRAINT fk_provider_keys_organization FOREIGN KEY (organization)
        REFERENCES rag_catalog.organizations(id) ON DELETE CASCADE,
    CONSTRAINT fk_provider_keys_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE
);
ALTER TABLE rag_catalog.provider_keys
    ALTER COLUMN nonce SET STATISTICS 0,
    ALTER COLUMN ciphertext SET STATISTICS 0,
    ALTER COLUMN last_four SET STATISTICS 0;

CREATE TABLE rag_catalog.question_vectors (
    tenant text NOT NULL,
    embedder_id text NOT NULL,
    question_sha256 text NOT NULL,
    vector bytea NOT NULL,
    embedded_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_question_vectors PRIMARY KEY (tenant, embedder_id, question_sha256),
    CONSTRAINT fk_question_vectors_tenant FOREIGN KEY (tenant)
        REFERENCES rag_catalog.tenants(id) ON DELETE CASCADE
);
ALTER TABLE rag_catalog.question_vectors ALTER COLUMN vector SET STATISTICS 0;

CREATE TABLE rag_catalog.rag_settings (
    tenant text NOT NULL,
    operator_config jsonb DEFAULT '{}' NOT NULL,
    operator_enabled boolean NOT NULL,
    enabled boolean,
    provider text,
    embedding_model text,
    base_url text,
    dimensions integer,
    vector_backend text,
    resolved_comment_days integer,
    embedder jsonb,
    updated_at timestamptz DEFAULT now() NOT NULL,
    updated_by text NOT NULL,
    CONSTRAINT ck_rag_settings_provider CHECK (provider IN ('openai', 'gemini', 'localai',
        'ollama', 'local')),
    CONSTRAINT ck_rag_settings_vector_backend CHECK (vector_backend IN ('elasticsearch',
        'pgvector')),
    CONSTRAINT pk_rag_settings PRIMARY KEY (tenant),
    CONSTRAINT fk_rag_settings_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE
);
ALTER TABLE rag_catalog.rag_settings
    ALTER COLUMN operator_config SET STATISTICS 0,
    ALTER COLUMN embedding_model SET STATISTICS 0,
    ALTER COLUMN base_url SET STATISTICS 0,
    ALTER COLUMN embedder SET STATISTICS 0,
    ALTER COLUMN updated_by SET STATISTICS 0;

CREATE TABLE rag_catalog.receipt_keys (
    id smallint NOT NULL,
    key bytea NOT NULL,
    CONSTRAINT pk_receipt_keys PRIMARY KEY (id)
);
ALTER TABLE rag_catalog.receipt_keys ALTER COLUMN key SET STATISTICS 0;

CREATE TABLE rag_catalog.receipts (
    number bigint NOT NULL,
    id uuid NOT NULL,
    tenant text NOT NULL,
    incarnation bigint NOT NULL,
    kind text NOT NULL,
    rule text NOT NULL,
    by text NOT NULL,
    at timestamptz DEFAULT now() NOT NULL,
    counts jsonb DEFAULT '{}' NOT NULL,
    documents jsonb DEFAULT '[]' NOT NULL,
    proof jsonb DEFAULT '{}' NOT NULL,
    previous text NOT NULL,
    hash text NOT NULL,
    CONSTRAINT pk_receipts PRIMARY KEY (number),
    CONSTRAINT uq_receipts_id UNIQUE (id)
);
CREATE INDEX ix_receipts_tenant ON rag_catalog.receipts (tenant);
ALTER TABLE rag_catalog.receipts
    ALTER COLUMN by SET STATISTICS 0,
    ALTER COLUMN counts SET STATISTICS 0,
    ALTER COLUMN documents SET STATISTICS 0,
    ALTER COLUMN proof SET STATISTICS 0;

CREATE TABLE rag_catalog.record_clocks (
    tenant text NOT NULL,
    document_id text NOT NULL,
    part text DEFAULT '' NOT NULL,
    updated_at timestamptz,
    version bigint,
    CONSTRAINT pk_record_clocks PRIMARY KEY (tenant, document_id, part),
    CONSTRAINT fk_record_clocks_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE
);

CREATE TABLE rag_catalog.record_files (
    tenant text NOT NULL,
    document_id text NOT NULL,
    content_sha256 text NOT NULL,
    size bigint NOT NULL,
    kept_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_record_files PRIMARY KEY (tenant, document_id, content_sha256),
    CONSTRAINT fk_record_files_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE
);
CREATE INDEX ix_record_files_tenant_content_sha256 ON rag_catalog.record_files (tenant,
    content_sha256);

CREATE TABLE rag_catalog.record_texts (
    tenant text NOT NULL,
    document_id text NOT NULL,
    content_sha256 text NOT NULL,
    text text NOT NULL,
    kept_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_record_texts PRIMARY KEY (tenant, document_id, content_sha256),
    CONSTRAINT fk_record_texts_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE
);
ALTER TABLE rag_catalog.record_texts ALTER COLUMN text SET STATISTICS 0;

CREATE TABLE rag_catalog.scope_ancestors (
    tenant text NOT NULL,
    scope text NOT NULL,
    ancestor text NOT NULL,
    CONSTRAINT pk_scope_ancestors PRIMARY KEY (tenant, scope, ancestor),
    CONSTRAINT fk_scope_ancestors_tenant FOREIGN KEY (tenant)
        REFERENCES rag_catalog.tenants(id) ON DELETE CASCADE
);
CREATE INDEX ix_scope_ancestors_tenant_ancestor ON rag_catalog.scope_ancestors (tenant, ancestor);

CREATE TABLE rag_catalog.security_changes (
    id uuid NOT NULL,
    epoch bigint NOT NULL,
    at timestamptz DEFAULT now() NOT NULL,
    tenant text,
    kind text NOT NULL,
    name text NOT NULL,
    about jsonb DEFAULT '[]' NOT NULL,
    CONSTRAINT pk_security_changes PRIMARY KEY (id)
);
CREATE INDEX ix_security_changes_epoch ON rag_catalog.security_changes (epoch);

CREATE TABLE rag_catalog.service_tokens (
    token_id text NOT NULL,
    tenant text,
    token_sha256 bytea NOT NULL,
    role text NOT NULL,
    principals text[] DEFAULT '{}'::text[] NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    expires_at timestamptz,
    last_used_at timestamptz,
    organization text,
    CONSTRAINT ck_service_tokens_owner CHECK ((tenant IS NULL) <> (organization IS NULL)),
    CONSTRAINT ck_service_tokens_role CHECK (role IN ('admin', 'member', 'guest', 'orchestrator',
        'writer')),
    CONSTRAINT pk_service_tokens PRIMARY KEY (token_id),
    CONSTRAINT uq_service_tokens_token_sha256 UNIQUE (token_sha256),
    CONSTRAINT fk_service_tokens_organization FOREIGN KEY (organization)
        REFERENCES rag_catalog.organizations(id) ON DELETE CASCADE,
    CONSTRAINT fk_service_tokens_tenant FOREIGN KEY (tenant)
        REFERENCES rag_catalog.tenants(id) ON DELETE CASCADE
);
CREATE INDEX ix_service_tokens_organization ON rag_catalog.service_tokens (organization);
CREATE INDEX ix_service_tokens_tenant ON rag_catalog.service_tokens (tenant);
ALTER TABLE rag_catalog.service_tokens
    ALTER COLUMN token_sha256 SET STATISTICS 0,
    ALTER COLUMN principals SET STATISTICS 0;

CREATE TABLE rag_catalog.panel_codes (
    code_sha256 bytea NOT NULL,
    tenant text NOT NULL,
    name text NOT NULL,
    principals text[] DEFAULT '{}'::text[] NOT NULL,
    token_id text,
    created_at timestamptz DEFAULT now() NOT NULL,
    expires_at timestamptz NOT NULL,
    token_expires_at timestamptz,
    CONSTRAINT pk_panel_codes PRIMARY KEY (code_sha256),
    CONSTRAINT fk_panel_codes_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE,
    CONSTRAINT fk_panel_codes_token_id FOREIGN KEY (token_id)
        REFERENCES rag_catalog.service_tokens(token_id) ON DELETE CASCADE
);
CREATE INDEX ix_panel_codes_expires_at ON rag_catalog.panel_codes (expires_at);
CREATE INDEX ix_panel_codes_tenant ON rag_catalog.panel_codes (tenant);
CREATE INDEX ix_panel_codes_token_id ON rag_catalog.panel_codes (token_id);
ALTER TABLE rag_catalog.panel_codes
    ALTER COLUMN code_sha256 SET STATISTICS 0,
    ALTER COLUMN name SET STATISTICS 0,
    ALTER COLUMN principals SET STATISTICS 0;

CREATE TABLE rag_catalog.panel_sessions (
    session_sha256 bytea NOT NULL,
    tenant text NOT NULL,
    name text NOT NULL,
    principals text[] DEFAULT '{}'::text[] NOT NULL,
    token_id text,
    created_at timestamptz DEFAULT now() NOT NULL,
    expires_at timestamptz NOT NULL,
    used_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_panel_sessions PRIMARY KEY (session_sha256),
    CONSTRAINT fk_panel_sessions_tenant FOREIGN KEY (tenant)
        REFERENCES rag_catalog.tenants(id) ON DELETE CASCADE,
    CONSTRAINT fk_panel_sessions_token_id FOREIGN KEY (token_id)
        REFERENCES rag_catalog.service_tokens(token_id) ON DELETE CASCADE
);
CREATE INDEX ix_panel_sessions_expires_at ON rag_catalog.panel_sessions (expires_at);
CREATE INDEX ix_panel_sessions_tenant ON rag_catalog.panel_sessions (tenant);
CREATE INDEX ix_panel_sessions_token_id ON rag_catalog.panel_sessions (token_id);
ALTER TABLE rag_catalog.panel_sessions
    ALTER COLUMN session_sha256 SET STATISTICS 0,
    ALTER COLUMN name SET STATISTICS 0,
    ALTER COLUMN principals SET STATISTICS 0;

CREATE TABLE rag_catalog.serving (
    tenant text NOT NULL,
    generation integer NOT NULL,
    index_name text NOT NULL,
    index_uuid text NOT NULL,
    embedder_id text NOT NULL,
    published_at timestamptz DEFAULT now() NOT NULL,
    pinned_generation integer,
    pinned_at timestamptz,
    pinned_by text,
    pin_reason text,
    CONSTRAINT pk_serving PRIMARY KEY (tenant),
    CONSTRAINT fk_serving_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE,
    CONSTRAINT fk_serving_tenant_generation FOREIGN KEY (tenant, generation)
        REFERENCES rag_catalog.generations(tenant, generation)
);
ALTER TABLE rag_catalog.serving
    ALTER COLUMN pinned_by SET STATISTICS 0,
    ALTER COLUMN pin_reason SET STATISTICS 0;

CREATE TABLE rag_catalog.slices (
    tenant text NOT NULL,
    run_id text NOT NULL,
    generation integer NOT NULL,
    config_key text NOT NULL,
    document_ids jsonb DEFAULT '[]' NOT NULL,
    unlisted jsonb DEFAULT '[]' NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    spent numeric(18,8) DEFAULT '0'::numeric NOT NULL,
    CONSTRAINT pk_slices PRIMARY KEY (tenant),
    CONSTRAINT fk_slices_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE
);
ALTER TABLE rag_catalog.slices ALTER COLUMN unlisted SET STATISTICS 0;

CREATE TABLE rag_catalog.source_records (
    tenant text NOT NULL,
    source text NOT NULL,
    source_type text NOT NULL,
    source_id text NOT NULL,
    document_id text NOT NULL,
    record_key text NOT NULL,
    revision bigint NOT NULL,
    text text NOT NULL,
    media_type text NOT NULL,
    size integer NOT NULL,
    content_sha256 text NOT NULL,
    said jsonb DEFAULT '{}' NOT NULL,
    modified_at timestamptz,
    changed_at timestamptz DEFAULT now() NOT NULL,
    page_uuid text,
    resolved_at timestamptz,
    lane smallint DEFAULT '0'::smallint NOT NULL,
    waiting_since timestamptz DEFAULT now() NOT NULL,
    pushed_at timestamptz,
    CONSTRAINT pk_source_records PRIMARY KEY (tenant, source, source_type, source_id),
    CONSTRAINT fk_source_records_tenant FOREIGN KEY (tenant)
        REFERENCES rag_catalog.tenants(id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX ix_source_records_tenant_document_id ON rag_catalog.source_records (tenant,
    document_id);
CREATE INDEX ix_source_records_tenant_page_uuid ON rag_catalog.source_records (tenant,
    page_uuid) WHERE (page_uuid IS NOT NULL);
ALTER TABLE rag_catalog.source_records
    ALTER COLUMN source_type SET STATISTICS 0,
    ALTER COLUMN source_id SET STATISTICS 0,
    ALTER COLUMN text SET STATISTICS 0,
    ALTER COLUMN said SET STATISTICS 0,
    ALTER COLUMN page_uuid SET STATISTICS 0;

CREATE TABLE rag_catalog.syncs (
    tenant text NOT NULL,
    source text NOT NULL,
    listing_digest text,
    listed_at_ns bigint,
    config_key text,
    held_deletions integer DEFAULT 0 NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    last_error text,
    retry_at timestamptz,
    succeeded_at timestamptz,
    held_prunes integer DEFAULT 0 NOT NULL,
    held_reason text,
    folders jsonb,
    CONSTRAINT pk_syncs PRIMARY KEY (tenant, source),
    CONSTRAINT fk_syncs_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE
);
ALTER TABLE rag_catalog.syncs ALTER COLUMN last_error SET STATISTICS 0;

CREATE TABLE rag_catalog.tenant_locks (
    tenant text NOT NULL,
    holder jsonb DEFAULT '{}' NOT NULL,
    acquired_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_tenant_locks PRIMARY KEY (tenant)
);

CREATE TABLE rag_catalog.tombstones (
    tenant text NOT NULL,
    document_id text NOT NULL,
    content_sha256 text NOT NULL,
    pruned_at timestamptz DEFAULT now() NOT NULL,
    invalidated boolean DEFAULT false NOT NULL,
    CONSTRAINT pk_tombstones PRIMARY KEY (tenant, document_id),
    CONSTRAINT fk_tombstones_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE
);

CREATE TABLE rag_catalog.uploads (
    tenant text NOT NULL,
    document_id text NOT NULL,
    source text NOT NULL,
    path text NOT NULL,
    revision bigint NOT NULL,
    file_name text NOT NULL,
    media_type text NOT NULL,
    size bigint NOT NULL,
    content_sha256 text NOT NULL,
    uploaded_by text NOT NULL,
    enabled boolean DEFAULT true NOT NULL,
    created_at timestamptz DEFAULT now() NOT NULL,
    updated_at timestamptz DEFAULT now() NOT NULL,
    CONSTRAINT pk_uploads PRIMARY KEY (tenant, document_id),
    CONSTRAINT fk_uploads_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE
);
CREATE INDEX ix_uploads_tenant_content_sha256 ON rag_catalog.uploads (tenant, content_sha256);
ALTER TABLE rag_catalog.uploads
    ALTER COLUMN file_name SET STATISTICS 0,
    ALTER COLUMN uploaded_by SET STATISTICS 0;

CREATE TABLE rag_catalog.usage (
    tenant text NOT NULL,
    day date NOT NULL,
    provider text NOT NULL,
    model text NOT NULL,
    requests bigint DEFAULT '0'::bigint NOT NULL,
    tokens bigint DEFAULT '0'::bigint NOT NULL,
    cost numeric(18,8) DEFAULT '0'::numeric NOT NULL,
    retries bigint DEFAULT '0'::bigint NOT NULL,
    texts bigint DEFAULT '0'::bigint NOT NULL,
    batch_tokens bigint DEFAULT '0'::bigint NOT NULL,
    unpriced_tokens bigint DEFAULT '0'::bigint NOT NULL,
    output_tokens bigint DEFAULT '0'::bigint NOT NULL,
    CONSTRAINT pk_usage PRIMARY KEY (tenant, day, provider, model),
    CONSTRAINT fk_usage_tenant FOREIGN KEY (tenant) REFERENCES rag_catalog.tenants(id)
        ON DELETE CASCADE
);

CREATE FUNCTION rag_catalog.begin_wait() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE pushed timestamptz;
BEGIN
    IF NEW.revision IS NOT NULL AND NEW.status <> 'DELETED' AND (
        TG_OP = 'INSERT' OR OLD.status = 'DELETED' OR NEW.revision IS DISTINCT FROM OLD.revision
    ) THEN
        SELECT waiting_since INTO pushed FROM rag_catalog.source_records AS record
        WHERE record.tenant = NEW.tenant AND record.document_id = NEW.document_id;
    END IF;
    NEW.waiting_since := coalesce(pushed, now());
    RETURN NEW;
END
$$;

CREATE FUNCTION rag_catalog.is_held(text, text, text) RETURNS boolean
    LANGUAGE sql STABLE
    AS $_$
    SELECT EXISTS (
        SELECT FROM rag_catalog.holds AS hold
        WHERE hold.tenant = $1 AND (
            hold.document_id = $2 OR hold.source = $3
            OR (hold.document_id IS NULL AND hold.source IS NULL)
        )
    ) OR EXISTS (
        SELECT FROM rag_catalog.uploads AS upload
        WHERE upload.tenant = $1 AND upload.document_id = $2 AND NOT upload.enabled
    )
$_$;

CREATE FUNCTION rag_catalog.keep_held_record() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF rag_catalog.is_held(OLD.tenant, OLD.document_id, OLD.source) THEN
        INSERT INTO rag_catalog.held_records
        SELECT OLD.tenant, OLD.document_id, OLD.revision, OLD.source, OLD.source_type,
            OLD.source_id, OLD.text, OLD.media_type, OLD.content_sha256, OLD.said,
            OLD.modified_at, OLD.changed_at
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION rag_catalog.keep_held_text() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF TG_OP = 'UPDATE'
        AND NEW.parse_key IS NOT DISTINCT FROM OLD.parse_key
        AND NEW.chunk_set_key IS NOT DISTINCT FROM OLD.chunk_set_key
    THEN
        RETURN NULL;
    END IF;
    INSERT INTO rag_catalog.held_texts (tenant, document_id, parse_key, chunk_set_key)
    SELECT OLD.tenant, OLD.document_id, OLD.parse_key, OLD.chunk_set_key
    FROM rag_catalog.documents AS document
    WHERE document.tenant = OLD.tenant AND document.document_id = OLD.document_id
        AND rag_catalog.is_held(OLD.tenant, OLD.document_id, document.source)
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;

CREATE FUNCTION rag_catalog.keep_held_upload() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF EXISTS (
        SELECT FROM rag_catalog.holds AS hold
        WHERE hold.tenant = OLD.tenant AND (
            hold.document_id = OLD.document_id OR hold.source = OLD.source
            OR (hold.document_id IS NULL AND hold.source IS NULL)
        )
    ) THEN
        INSERT INTO rag_catalog.held_uploads
        SELECT OLD.tenant, OLD.document_id, OLD.revision, OLD.source, OLD.file_name,
            OLD.media_type, OLD.size, OLD.content_sha256, OLD.uploaded_by, OLD.updated_at
        ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER begin_wait_on_insert BEFORE INSERT ON rag_catalog.documents FOR EACH ROW
    WHEN ((new.revision IS NOT NULL)) EXECUTE FUNCTION rag_catalog.begin_wait();
CREATE TRIGGER begin_wait_on_update BEFORE UPDATE ON rag_catalog.documents FOR EACH ROW
    WHEN ((((new.status <> old.status) AND (new.status = ANY (ARRAY['PROCESSING'::text,
    'DELETED'::text])))
    OR ((new.access_scope = 'tree:excluded'::text) <> (old.access_scope = 'tree:excluded'::text))))
    EXECUTE FUNCTION rag_catalog.begin_wait();
CREATE TRIGGER keep_held_former_upload AFTER UPDATE ON rag_catalog.uploads FOR EACH ROW
    WHEN ((old.content_sha256 <> new.content_sha256))
    EXECUTE FUNCTION rag_catalog.keep_held_upload();
CREATE TRIGGER keep_held_record AFTER DELETE OR UPDATE ON rag_catalog.source_records
    FOR EACH ROW EXECUTE FUNCTION rag_catalog.keep_held_record();
CREATE TRIGGER keep_held_text AFTER DELETE OR UPDATE ON rag_catalog.document_index
    FOR EACH ROW WHEN ((old.parse_key IS NOT NULL)) EXECUTE FUNCTION rag_catalog.keep_held_text();
CREATE TRIGGER keep_held_upload AFTER DELETE ON rag_catalog.uploads FOR EACH ROW
    EXECUTE FUNCTION rag_catalog.keep_held_upload();
