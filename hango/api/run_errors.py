"""What the errors of runs mean, in a sentence each."""

from __future__ import annotations

from collections.abc import Mapping

from hango.api.try_replies import SENTENCES as TRY_SENTENCES
from hango.runs import RunError
from hango.tries import TryError

_OWN: Mapping[RunError, str] = {
    RunError.TIMEOUT: "The run, or a model call of it, took longer than it may.",
    RunError.QUEUE_EXPIRED: "No worker took the run in time; nothing was called. Is a worker running?",
    RunError.CANCELLED: "The run was cancelled.",
    RunError.WORKER_LOST: "The worker went away during a model call, which is not repeated: nothing is paid twice.",
    RunError.CONTEXT_CHANGED: "The context can no longer be made as it was accepted.",
    RunError.QUOTA_EXCEEDED: "The tenant's token quota for this month is used up: the run ended between two calls.",
    RunError.TOO_MANY_TURNS: "The run made as many model calls as one may (HANGO_RUN_MAX_TURNS).",
    RunError.TOO_MANY_TOKENS: "The run used as many tokens as one may (HANGO_RUN_MAX_TOKENS).",
    RunError.UNSENDABLE: "The context is one that the provider would refuse; `problems` of GET context says why.",
}
SENTENCES: Mapping[RunError, str] = {
    error: _OWN[error] if error in _OWN else TRY_SENTENCES[TryError(error.value)] for error in RunError
}
