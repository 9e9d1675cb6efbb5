"""ONNX models on this machine's CPU: their folders, their tokenizers, their sessions.

Belongs here: finding and loading models of every kind. Does not: the meaning of their outputs
(embedding, reranking).
"""
