"""Sources of code memory: Git repositories, derived documents, and records of agent runs."""
