"""The service under load, compared with bare Elasticsearch through its official client."""
