"""The service under load, beside bare Elasticsearch through its official client."""
