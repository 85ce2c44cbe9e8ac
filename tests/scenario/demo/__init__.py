"""`make demo`: a platform comes up, serves a real trace on a faster clock, and explains itself.

Everything goes through what a user has: the `inferbus` command, the router's port and the bus. All
times that are shown are the fleet's own: at rate 10, ten of its seconds pass in one.
"""
