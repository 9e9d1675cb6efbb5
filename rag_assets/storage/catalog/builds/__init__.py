"""Builds of a tenant's index: generations, progress, measurements, batches and syncs."""
