"""The body of every event, one module per domain.

Times are milliseconds since 1970 in virtual time, names end in `_ms`. Keys are the text form of
`ObjectKey`: `kind/namespace/name`, with `/role` behind it for a role of a ModelServing.
"""
