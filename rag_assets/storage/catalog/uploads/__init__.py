"""Files uploaded to tenants, and the blobs that tenants need."""
