"""Steps of searches in source code."""
