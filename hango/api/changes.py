"""What a caller changes for one call, as bodies of previews, tries and variants say it."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from hango.api import agent_rules
from hango.api.fields import Body, Name
from hango.chain import context_overrides
from hango.chain.parts import parse
from hango.chain.state import Wanted
from hango.chain.tries import Variant
from hango.errors import Invalid, Reason
from hango.messages import is_blank

MAX_PARTS = 5000  # in one set of overrides
MAX_TEXT = 1024 * 1024  # characters of a replacement or of extra text
MAX_MODEL = 300  # characters of "<provider>/<model>"


class ChangesIn(Body):
    """Unsaved overrides for one call. `message` is extra text of the user, `until` an earlier end of the history."""

    exclude: Annotated[list[str], Field(default_factory=list, max_length=MAX_PARTS)]
    replace: Annotated[
        dict[str, Annotated[str, Field(max_length=MAX_TEXT)]], Field(default_factory=dict, max_length=MAX_PARTS)
    ]
    include: Annotated[list[str], Field(default_factory=list, max_length=MAX_PARTS)]
    message: Annotated[str, Field(max_length=MAX_TEXT)] | None = None
    until: Annotated[int, Field(ge=1, le=2**63 - 1)] | None = None

    @property
    def named(self) -> int:
        """How many parts it names."""
        return len(self.exclude) + len(self.replace) + len(self.include)

    def wanted(self) -> Wanted:
        """Raises Invalid naming the part or field at fault: what cannot stand together, whatever the session."""
        overrides = context_overrides.read(self.exclude, self.replace)
        named = {override.part for override in overrides}
        for text in self.include:
            if text != context_overrides.ALL and parse(text).id in named:
                message = f"The part '{text}' is both included and changed. Name it once."
                raise Invalid.because(Reason.DUPLICATE_PART, message, part=text)
        if self.message is not None and is_blank(self.message):
            message = "The extra text is empty. Leave it out, or write some."
            raise Invalid.because(Reason.BAD_FIELD, message, pointer="/message")
        return Wanted(overrides, self.include, self.message, self.until)


class VariantIn(ChangesIn):
    """One change of the context to be tried. `model` is called in place of the agent's."""

    model: Annotated[str, Field(max_length=MAX_MODEL)] | None = None
    label: Name | None = None

    def variant(self) -> Variant:
        """Raises Invalid naming the part or field at fault."""
        wanted = self.wanted()
        if self.model is not None:
            agent_rules.check_model(self.model)
        return Variant(self.label, replace(wanted, model=self.model))
