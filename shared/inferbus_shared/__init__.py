"""The bus, clock, leases, settings and process tools that the services share."""
