"""Settings: the keys of JSON, YAML, TOML, INI and .env files, with their offsets."""
