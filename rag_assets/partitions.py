"""The one partitioning of the project: a partition is a tenant; a document never is."""

import dagster as dg

tenants_partitions = dg.DynamicPartitionsDefinition(name="rag_assets_tenants")
