-- Makes the roles of the database in which it runs, whose names begin with the database's: _owner,
-- _writer, _service and _dagster. It may run again at any time. Run it as a superuser.

DO $roles$
DECLARE
  prefix text := current_database() || '_';
  owner text := prefix || 'owner';
  writer text := prefix || 'writer';
  service text := prefix || 'service';
  dagster text := prefix || 'dagster';
  name text;
  item record;
BEGIN
  FOREACH name IN ARRAY ARRAY[owner, writer, service, dagster] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN
      EXECUTE format('CREATE ROLE %I LOGIN', name);
    END IF;
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), name);
  END LOOP;
  EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
  EXECUTE format('GRANT CREATE ON DATABASE %I TO %I, %I', current_database(), owner, writer);
  EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO %I, %I', current_database(), writer, service);
  REVOKE CREATE ON SCHEMA public FROM PUBLIC;
  -- Erasures remove names of documents from run records.
  EXECUTE format('GRANT %I TO %I', dagster, writer);
  IF current_setting('server_version_num')::int < 170000 THEN
    -- Until version 17, only the owner of a table may vacuum it.
    EXECUTE format('GRANT %I TO %I', owner, writer);
  END IF;
  -- Only a superuser may create it.
  IF EXISTS (SELECT FROM pg_available_extensions e WHERE e.name = 'vector') THEN
    CREATE EXTENSION IF NOT EXISTS vector;
  END IF;

  EXECUTE format('CREATE SCHEMA IF NOT EXISTS rag_catalog AUTHORIZATION %I', owner);
  EXECUTE format('CREATE SCHEMA IF NOT EXISTS rag_dagster AUTHORIZATION %I', dagster);
  FOR item IN
    SELECT nspname, CASE nspname WHEN 'rag_catalog' THEN owner WHEN 'rag_dagster' THEN dagster
      ELSE writer END AS new_owner
    FROM pg_namespace WHERE nspname IN ('rag_catalog', 'rag_dagster') OR nspname ~ '_vectors_'
  LOOP
    EXECUTE format('ALTER SCHEMA %I OWNER TO %I', item.nspname, item.new_owner);
    IF item.new_owner = writer THEN
      EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', item.nspname, service);
      EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA %I TO %I', item.nspname, service);
    END IF;
  END LOOP;
  FOREACH name IN ARRAY ARRAY['USAGE ON SCHEMAS', 'SELECT ON TABLES'] LOOP
    EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %I GRANT %s TO %I', writer, name, service);
  END LOOP;

  FOR item IN
    SELECT nspname, relname, CASE relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind,
      CASE nspname WHEN 'rag_catalog' THEN owner WHEN 'rag_dagster' THEN dagster
        ELSE writer END AS new_owner
    FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
    WHERE relkind IN ('r', 'p', 'S')
      -- The sequence of a column belongs to whoever the table belongs to.
      AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype IN ('a', 'i'))
      AND (nspname IN ('rag_catalog', 'rag_dagster') OR nspname ~ '_vectors_')
  LOOP
    EXECUTE format(
      'ALTER %s %I.%I OWNER TO %I', item.kind, item.nspname, item.relname, item.new_owner);
  END LOOP;
  FOR item IN
    SELECT p.oid::regprocedure AS what FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace
    WHERE nspname = 'rag_catalog'
  LOOP
    EXECUTE format('ALTER ROUTINE %s OWNER TO %I', item.what, owner);
  END LOOP;
END
$roles$;
