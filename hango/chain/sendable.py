"""Whether a drafted request could be sent and answered, and if not, what would mend it."""

from __future__ import annotations

from collections.abc import Mapping

from hango.chain.context import Drafted
from hango.chain.deps import Deps
from hango.chain.draft import Draft
from hango.errors import Detail, Invalid, Reason

# With these a provider would refuse the request, or answer something else than what was asked.
UNSENDABLE = frozenset(
    {
        Reason.NO_USER_MESSAGE,
        Reason.STARTS_WITH_ASSISTANT,
        Reason.ENDS_WITH_ASSISTANT,
        Reason.BAD_TOOL_SCHEMA,
        Reason.TOO_MANY_TOOLS,
    }
)
_WAYS_OUT: Mapping[Reason, str] = {
    Reason.NO_USER_MESSAGE: " Give a `message`.",
    Reason.STARTS_WITH_ASSISTANT: " Exclude it.",
    Reason.ENDS_WITH_ASSISTANT: " Give a `message`.",
}
# An estimate may be half as large again as what is true: up to there the provider decides.
MOST_WINDOWS = 1.5


def check(deps: Deps, drafted: Drafted, *, compacts: bool = False, of_run: bool = False) -> None:
    """Raise Invalid when a provider would refuse the request, or nobody here could send it.

    `compacts`: its history is summarized first, so that its length says nothing yet. `of_run`: its history ends where
    it ends, no `until` is a way out.
    """
    fault = next((one for one in drafted.draft.problems if one.reason in UNSENDABLE), None)
    if fault is not None:
        fault = _with_way_out(fault, None if of_run else drafted.draft)
        raise Invalid(fault.message, errors=[fault])
    if not compacts:
        _check_length(drafted, of_run=of_run)
    provider = drafted.state.agent.provider
    if deps.providers.completer(provider) is None:
        message = f"This server has no key for the provider '{provider}': set HANGO_{provider.upper()}_API_KEY."
        raise Invalid.because(Reason.NO_PROVIDER_KEY, message)


def is_last_sent(drafted: Drafted) -> bool:
    """Whether something of the last message goes out: not of results that answer no call, nor of what a provider does
    not take."""
    draft = drafted.draft
    assert draft.repair is not None, "the context_overrides slot sets the repair"
    return len(draft.kept_messages()) - 1 not in draft.repair.unsent


def is_far_beyond(tokens: int, window: int) -> bool:
    """Whether so many estimated tokens are more than a model of this window can have been meant to take."""
    return tokens > MOST_WINDOWS * window


def _check_length(drafted: Drafted, *, of_run: bool) -> None:
    state, size = drafted.state, drafted.draft.size
    assert size is not None, "the summarization slot sets the sizes"
    if is_far_beyond(size.after, state.window):
        shorter = "summarize the history" if of_run else "end the history earlier with `until`"
        message = (
            f"The request would have about {size.after:,} tokens, and the model '{state.agent.model}' holds"
            f" {state.window:,}. Exclude parts, or {shorter}."
        )
        raise Invalid.because(Reason.CONTEXT_TOO_LONG, message)


def _with_way_out(fault: Detail, draft: Draft | None) -> Detail:
    """The fault, and what would mend it: for a history that ends with the assistant the earlier end that would do,
    where there is a draft to look for one in."""
    way = _WAYS_OUT.get(fault.reason, "")
    if fault.reason is Reason.ENDS_WITH_ASSISTANT and draft is not None and (ends := _ends_of_user(draft)):
        way = f" Give a `message`, or `until: {ends[-1]}` to ask that one again."
    return Detail(fault.reason, fault.message + way, fault.part, fault.pointer)


def _ends_of_user(draft: Draft) -> list[int]:
    """The messages of the user that are sent: a request could end with each of them."""
    assert draft.repair is not None, "the context_overrides slot sets the repair"
    unsent, kept = draft.repair.unsent, enumerate(draft.kept_messages())
    return [item.seq for at, item in kept if item.role == "user" and item.seq > 0 and at not in unsent]
