"""A company's workspace as an application would push it, and judged questions about it."""
