"""A set is refused for a fault that it caused, and for no other."""

from __future__ import annotations

import pytest

from hango.chain.validity import new_fault
from hango.errors import Reason
from hango.messages import Message
from tests.drafts import exclude, mended
from tests.histories import said

USER_FIRST = [said("user", "Hi."), said("assistant", "Hello."), said("user", "News?")]
ASSISTANT_FIRST = [said("assistant", "Hello."), said("user", "News?"), said("assistant", "None.")]


@pytest.mark.parametrize(
    ("history", "parts", "fault"),
    [
        (USER_FIRST, ["message:2"], None),
        (USER_FIRST, ["message:1", "message:2"], None),
        (USER_FIRST, ["message:1"], Reason.STARTS_WITH_ASSISTANT),
        (USER_FIRST, ["message:1", "message:3"], Reason.NO_USER_MESSAGE),
        # It started with the assistant before: only what the set adds counts.
        (ASSISTANT_FIRST, ["message:3"], None),
        (ASSISTANT_FIRST, ["message:1"], None),
        (ASSISTANT_FIRST, ["message:2"], Reason.NO_USER_MESSAGE),
        ([said("assistant", "Hello.")], ["message:1"], None),
    ],
)
def test_a_set_is_refused_for_its_own_faults_only(
    history: list[Message], parts: list[str], fault: Reason | None
) -> None:
    """A set is never refused for a fault that it did not cause, and always for one that it did."""
    draft = mended(history, overrides=exclude(*parts))
    assert draft.repair is not None
    assert draft.unmarked is not None

    found = new_fault(draft.repair, draft.unmarked)

    assert (found.reason if found else None) == fault
