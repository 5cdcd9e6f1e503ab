"""Reasons of the API in words, where its reply has the code alone. A code that is not here is shown by itself."""

from __future__ import annotations

# What is odd in an import; docs/import-formats.md lists the same codes.
OF_IMPORTS = {
    "unpaired_tool_use": "a call without a result",
    "unpaired_tool_result": "a result without a call",
    "duplicate_tool_use_id": "a call with the id of one that is still open",
    "duplicate_tool_result": "a second result of one call",
    "bad_tool_arguments": "a call whose input is no JSON object",
    "bad_tool_name": "a tool name that providers refuse",
    "duplicate_tool_name": "a second tool with one name, left out",
    "unsigned_thinking": "thinking that no model signed",
    "unknown_block": "a block that hango does not know",
    "empty_text": "a text of nothing but white space",
    "empty_message": "a message without blocks",
    "system_in_history": "a system message inside the history",
    "side_chain": "a session that is a side chain",
    "not_in_context": "left out: the agent of --agent keeps its own",
    "param_not_taken": "a parameter without a place here, left out",
    "bad_model": "a model name that cannot be one: the agent is offline",
}

# Why a saved override has no effect now.
OF_STALE = {
    "not_in_context": "not in the context now",
    "in_summary": "in the summary now",
    "replace_breaks_pair": "its text would part a tool call from its result",
}

# Why what a provider had cached of one call could not be read by the other.
OF_CACHE = {
    "model": "the model is another one, and a cache is of one model",
    "added": "it was not there before",
    "removed": "it is not there any longer",
    "changed": "its content is another one",
    "params": "thinking or the choice of tools is another one, on which the cache of messages hangs",
}
