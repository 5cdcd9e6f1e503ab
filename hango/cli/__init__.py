"""The command line.

User commands know the public HTTP API only; `up`, `serve`, `migrate` and `tenant` run the parts of hango.
"""
