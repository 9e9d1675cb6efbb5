"""The pages of workspaces in the panel."""
