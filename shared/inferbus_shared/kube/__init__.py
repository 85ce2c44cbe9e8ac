"""Kubernetes as the services see it: dicts over HTTP, a list+watch cache, and errors as problems.

`kubernetes_asyncio` appears here alone, and only where a kubeconfig file is read: importing any
part of it imports its typed models, 77 MB and a second that nothing here uses (ADR 0024). What is
sent and read are plain dicts.
"""
