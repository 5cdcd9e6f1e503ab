"""Providers: a request in the words of one API. They know the message protocol and nothing else of hango.

`wire.py` holds the shaping that several share; `anthropic.py`, `openai_compatible.py` and `offline.py` are
the adapters; `registry.py` finds one by name. What a wire takes is said once, in each adapter's `Dialect`.
"""
