"""Zero invalid requests: made histories and override sets against strict checkers of what either API takes."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from hango.chain.state import Wanted
from hango.domain import OverrideScope, SavedOverride
from hango.errors import Invalid, Reason
from tests.wire.making import message_lists, worlds
from tests.wire.sets import Words, any_words, as_saved, good_words, parts_of_agent, parts_of_session, put
from tests.wire.worlds import ANTHROPIC_MODELS, OPENAI_MODELS, World, next_call

# So that several processes share the work. `--hypothesis-profile deep` makes ten times as many: 10,000.
SHARDS = 5
# Enough for the deep profile on a busy machine, and for a failure to shrink.
SECONDS = 1800
made = settings(
    max_examples=2 * settings().max_examples,
    derandomize=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

# Why a set may be refused before it is saved.
REFUSALS = {
    Reason.BAD_PART_ID,
    Reason.UNKNOWN_PART,
    Reason.DUPLICATE_PART,
    Reason.WRONG_SCOPE,
    Reason.REPLACE_TOOL,
    Reason.INVALID_TEXT,
    Reason.EMPTY_REPLACEMENT,
    Reason.REPLACE_BREAKS_PAIR,
    Reason.NO_USER_MESSAGE,
    Reason.STARTS_WITH_ASSISTANT,
}
UNSENDABLE = {Reason.NO_USER_MESSAGE, Reason.STARTS_WITH_ASSISTANT}

some = settings(made, max_examples=made.max_examples // 10)

anthropic_models, openai_models = st.sampled_from(ANTHROPIC_MODELS), st.sampled_from(OPENAI_MODELS)


async def sound(world: World, saved: list[SavedOverride]) -> set[Reason]:
    """Hold that the next call's body has no fault; the problems that its draft lists."""
    call = await next_call(world, saved)
    assert call.faults() == [], call.body.decode()
    return call.reasons


async def stored(
    world: World, saved: list[SavedOverride], words: Words, scope: OverrideScope
) -> list[SavedOverride] | None:
    """The sets after a PUT; None when it is refused, then with a reason of the closed list."""
    try:
        return await put(world, saved, words, scope)
    except Invalid as refused:
        reasons = {one.reason for one in refused.errors}
    assert reasons
    assert reasons <= REFUSALS
    return None


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("shard", range(SHARDS))
@made
@given(worlds(), anthropic_models, openai_models, st.data())
async def test_no_set_makes_a_request_that_a_provider_refuses(
    shard: int, world: World, anthropic_model: str, openai_model: str, data: st.DataObject
) -> None:
    """A strict door for either API refuses none of the requests: a set that would break one is 422, with a reason of
    the closed list, and what was wrong with the history before is repaired or listed. Later messages change nothing
    of that: the stored sets stay valid, or are not applied. A question put to the session ends it with the user."""
    of_agent, of_session = data.draw(any_words(parts_of_agent(world))), data.draw(any_words(parts_of_session(world)))
    later = data.draw(message_lists())
    for here in (world.of(anthropic_model), world.of(openai_model)):
        saved: list[SavedOverride] = []
        before = await sound(here, saved)
        for words, scope in ((of_agent, OverrideScope.AGENT), (of_session, OverrideScope.SESSION)):
            made = await stored(here, saved, words, scope)
            if made is not None:
                saved = made
                after = await sound(here, saved)
                assert before & UNSENDABLE or not after & UNSENDABLE
        await sound(here.appended(later), saved)
        asked = await next_call(here, saved, Wanted(message="And now?"))
        assert asked.faults() == [], asked.body.decode()
        assert not asked.reasons & {Reason.NO_USER_MESSAGE, Reason.ENDS_WITH_ASSISTANT}


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("shard", range(SHARDS))
@some
@given(worlds(), anthropic_models, openai_models, st.data())
async def test_a_stored_set_that_turned_bad_is_not_applied(
    shard: int, world: World, anthropic_model: str, openai_model: str, data: st.DataObject
) -> None:
    """A stored set that would leave no valid request is not applied, in whole, and the snapshot says so."""
    words = data.draw(good_words(parts_of_session(world)))
    for here in (world.of(anthropic_model), world.of(openai_model)):
        plain = await next_call(here)
        set_of = as_saved(plain, words.read(), OverrideScope.SESSION)
        judged = await stored(here, [], words, OverrideScope.SESSION)
        call = await next_call(here, set_of)
        # No set that could ever be stored.
        assume(all(one.reason is not Reason.REPLACE_BREAKS_PAIR for one in call.draft.stale))
        assert call.faults() == []
        if judged is None:
            assert (call.body, dict(call.draft.marks)) == (plain.body, {})
            assert call.reasons & UNSENDABLE
