"""Every figure that the project promises, measured and printed with its configuration.

`python -m tests.bench` runs all of them, `python -m tests.bench NAME…` some; see `__main__`.
"""
