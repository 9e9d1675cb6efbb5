"""Sources of documents.

Belongs here: listing the documents of a source, reading one document within limits, hashing, and
comparing a listing with the known documents. Does not: the meaning of a document's bytes (parsing),
the storage of rows and blobs (storage), the choice of each tenant's sources (tenants).
"""
