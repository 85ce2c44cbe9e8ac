"""What others see of the contracts: JSON Schemas, AsyncAPI documents, golden documents, releases.

Everything here is derived from the typed models and tables, so nothing of it can say anything else
than the code does. Pure, except `files`, which reads and writes the folder it all is kept in.
"""
