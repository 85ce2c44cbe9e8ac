"""HTTP/1.1 to one server, at a quarter of what a general client costs (ADR 0030).

Protocols of asyncio and llhttp, with uvloop or without. Requests go over kept connections, or over
one of their own where the answer has no end. No cookies, no redirects, no compression, no HTTP/2.
"""
