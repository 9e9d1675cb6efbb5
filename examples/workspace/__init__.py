"""A company's workspace, as an application pushes it, and judged questions about it."""
