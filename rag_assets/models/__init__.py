"""Embedding models, rerankers and chat models, on this machine or over the network.

Belongs here: requests to models and their responses. Does not: keys and costs (billing), the use of
responses (pipeline, search).

| package | holds |
|---|---|
| transport | guarded connections, failures, retries and limits, for models of every kind |
| onnx | folders with ONNX models, and how they are loaded |
| prices | prices of tokens |
| embedding, reranking, chat | one kind of model each; none imports another |
| providers | one value for each provider: its names, models, prices and endpoints |
| config | a tenant's models in tenants.yaml |
| factory | builds models from their configuration |
"""
