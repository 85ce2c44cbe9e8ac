"""The bus: the only package that speaks NATS.

No service names an acknowledgement policy, a stream or a consumer: they come from the topology in
`contracts`. What the client library or the server would do wrong by default is closed here once and
held closed by the integration tests in `tests/integration`.
"""
