"""OpenAI, and servers that implement its API."""
