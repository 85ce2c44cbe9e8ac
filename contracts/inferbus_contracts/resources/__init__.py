"""Typed models of every resource kind, field by field, without any rule that spans fields.

A model says what can be written down and which defaults the schema gives; what must hold between
fields, and what webhooks fill in, is in `inferbus_contracts.admission`.
"""
