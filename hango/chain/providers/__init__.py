"""Providers: a request in the words of one API, and its answer. They know the message protocol, else nothing of hango.

`wire.py` holds the shaping that several share; `anthropic.py`, `openai_compatible.py` and `offline.py` are
the adapters; `registry.py` finds one by name. What a wire takes is said once, in each adapter's `Dialect`.

A call: `http.py` sends it once, within one deadline; `failures.py` says what an error means and `hiding.py` takes the
keys out of its words; `anthropic_answer.py` and `openai_answer.py` read an answer with what `answers.py` shares.
"""
