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


def check(deps: Deps, drafted: Drafted) -> None:
    """Raise Invalid when a provider would refuse the request, or nobody here could send it."""
    fault = next((one for one in drafted.draft.problems if one.reason in UNSENDABLE), None)
    if fault is not None:
        fault = _with_way_out(fault, drafted.draft)
        raise Invalid(fault.message, errors=[fault])
    provider = drafted.state.agent.provider
    if deps.providers.completer(provider) is None:
        message = f"This server has no key for the provider '{provider}': set HANGO_{provider.upper()}_API_KEY."
        raise Invalid.because(Reason.NO_PROVIDER_KEY, message)


def _with_way_out(fault: Detail, draft: Draft) -> Detail:
    """The fault, and what would mend it: for a history that ends with the assistant the earlier end that would do."""
    way = _WAYS_OUT.get(fault.reason, "")
    if fault.reason is Reason.ENDS_WITH_ASSISTANT and (ends := _ends_of_user(draft)):
        way = f" Give a `message`, or `until: {ends[-1]}` to ask that one again."
    return Detail(fault.reason, fault.message + way, fault.part, fault.pointer)


def _ends_of_user(draft: Draft) -> list[int]:
    """The messages of the user that are sent: a request could end with each of them."""
    assert draft.repair is not None, "the context_overrides slot sets the repair"
    unsent, kept = draft.repair.unsent, enumerate(draft.kept_messages())
    return [item.seq for at, item in kept if item.role == "user" and item.seq > 0 and at not in unsent]
