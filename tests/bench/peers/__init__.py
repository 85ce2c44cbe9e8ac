"""The router beside other proxies: the same compiled engine and clients, one processor each."""
