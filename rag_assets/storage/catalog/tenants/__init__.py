"""Tenants, projects and organizations, and the settings that applications make."""
