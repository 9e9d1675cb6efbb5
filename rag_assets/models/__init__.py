"""Models that the chain asks: of embeddings, of reranking, of chat; here or over the network.

Belongs here: what a model is asked and answers. Does not: whose key and whose money it is
(billing), what is done with an answer (pipeline, retrieval).

| package | holds |
|---|---|
| transport | guarded connections, failures, retries and limits, for models of every kind |
| onnx | folders with ONNX models, and loading them |
| embedding, reranking, chat | one kind of model each; none imports another |
| providers | one value for each provider: its names, models, prices and endpoints |
| config | which models a tenant has, as tenants.yaml says it |
| factory | from a configuration to its model |
"""
