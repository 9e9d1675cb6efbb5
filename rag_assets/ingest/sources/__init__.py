"""Sources of documents.

Belongs here: listing what a source holds, reading one document of it within limits, hashing,
and comparing a listing with what is known. Does not: what a document's bytes mean (parsing),
where rows and blobs are kept (catalog), which tenant has which source (tenants).
"""
