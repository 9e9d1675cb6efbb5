"""Laravel's tables: the statements of migrations, and the tables that result from all files."""
