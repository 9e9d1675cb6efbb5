DO $grants$
DECLARE
  writer text := current_database() || '_writer';
  service text := current_database() || '_service';
  right_ text;
  item record;
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = service) THEN
    RETURN;
  END IF;
  EXECUTE format('GRANT USAGE ON SCHEMA rag_catalog TO %I, %I', writer, service);
  FOREACH right_ IN ARRAY ARRAY['USAGE, SELECT ON ALL SEQUENCES', 'SELECT ON ALL TABLES'] LOOP
    EXECUTE format('GRANT %s IN SCHEMA rag_catalog TO %I, %I', right_, writer, service);
  END LOOP;
  FOR item IN
    SELECT format('rag_catalog.%I', relname) AS name, relname LIKE 'alembic_version%' AS is_version,
      coalesce('SERVICE_RIGHTS'::jsonb ->> relname::text, 'INSERT, UPDATE, DELETE') AS rights
    FROM pg_class WHERE relnamespace = 'rag_catalog'::regnamespace AND relkind IN ('r', 'p')
  LOOP
    IF current_setting('server_version_num')::int >= 170000 THEN
      EXECUTE format('GRANT MAINTAIN ON %s TO %I', item.name, writer);
    END IF;
    -- Rights that a former version granted, too.
    EXECUTE format('REVOKE INSERT, UPDATE, DELETE ON %s FROM %I', item.name, service);
    CONTINUE WHEN item.is_version;
    EXECUTE format('GRANT INSERT, UPDATE, DELETE ON %s TO %I', item.name, writer);
    IF item.rights <> '' THEN
      EXECUTE format('GRANT %s ON %s TO %I', item.rights, item.name, service);
    END IF;
  END LOOP;
END
$grants$;
