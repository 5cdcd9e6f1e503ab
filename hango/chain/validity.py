"""What a set of overrides must leave: a history that starts with the user, and a message of the user to answer.

A set is refused only for a fault that it caused: what was wrong with the history before is repaired on the wire.
"""

from __future__ import annotations

from hango.chain.draft import Draft
from hango.chain.history import Repair
from hango.chain.parts import message_part, message_seq
from hango.domain import PartID
from hango.errors import Detail, Invalid, Reason

FAULTS = (Reason.NO_USER_MESSAGE, Reason.STARTS_WITH_ASSISTANT)


def new_fault(marked: Repair, unmarked: Repair) -> Detail | None:
    """The fault that only the marked history has."""
    old = {detail.reason for detail in unmarked.problems}
    return next((detail for detail in marked.problems if detail.reason in FAULTS and detail.reason not in old), None)


def refused(fault: Detail, marked: Draft) -> Invalid:
    """The refusal, naming the override at fault and what would mend it."""
    if fault.reason is Reason.STARTS_WITH_ASSISTANT and fault.part is not None:
        named = _last_named(marked, before=fault.part)
        message = (
            f"Without '{named}' the history would start with '{fault.part}', which is not a message of the user."
            f" Leave '{fault.part}' out as well, or keep '{named}'."
        )
        return Invalid.because(fault.reason, message, part=named)
    named = _last_named(marked, before=None)
    message = f"Without '{named}' no message of the user would be left to answer. Keep '{named}'."
    return Invalid.because(fault.reason, message, part=named)


def _last_named(marked: Draft, *, before: PartID | str | None) -> PartID | None:
    """The named part through which the last item before a part left: of the user, when there is one."""
    end = message_seq(PartID(before)) if before is not None else None
    items = [item for item in marked.messages if item.seq in marked.left_out and (end is None or item.seq < end)]
    of_user = [item for item in items if item.role == "user" and item.form != "results"]
    last = (of_user or items)[-1:]
    part = message_part(last[0].seq) if last else None
    return None if part is None else marked.mark(part).because or part
