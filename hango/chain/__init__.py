"""How one model request is assembled.

A base says what a request is made of: the agent's version, the history's end, the summary, the files (`base.py`).
A `State` is built from it; the middlewares of `stack.py` read it in `before_run`. The chain gathers system blocks and
tools, each with the part it came from, and wraps the call: every slot sees the same `Draft` (`draft.py`). A slot marks
what is left out; nothing is dropped before `Draft.to_request`. An inspect ends the call at a capture handler, a run at
a provider: there is no second way to assemble a request. `history.py` repairs what is sent, never what is stored;
`estimator.py` counts; `providers/` write the request in a provider's words.
"""
