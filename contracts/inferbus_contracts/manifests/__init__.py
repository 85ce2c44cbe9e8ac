"""What a cluster needs to know of the platform: its kinds, and what each service may do there.

Pure: everything here gives documents; `generate` writes them into `deploy/`.
"""
