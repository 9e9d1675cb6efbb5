"""The service under load, beside bare Elasticsearch asked by its official client."""
