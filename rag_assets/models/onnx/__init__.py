"""ONNX models on this machine's CPU: their folders, their tokenizers, their sessions.

Belongs here: what models of every kind need to be found and loaded. Does not: what their outputs
mean (embedding, reranking).
"""
