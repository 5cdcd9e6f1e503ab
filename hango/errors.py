"""Every failure a caller may meet: the class is the meaning, its docstring the default text.

HangoError
  Malformed 400          not_json, too_deep
  Unauthenticated 401    unauthenticated
  QuotaExceeded 402      quota_exceeded
  NotFound 404           not_found             not there and not yours alike; there is no 403
  Conflict 409           conflict, run_active
  PreconditionFailed 412 precondition_failed
  TooLarge 413           too_large
  Invalid 422            the first detail's reason, else invalid
  RateLimited 429        rate_limited, too_many_tries
  ProviderFailed 502     provider_failed
  Unavailable 503        unavailable
  ProviderTimeout 504    provider_timeout
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar


class Reason(StrEnum):
    """Why a part, a field or a line is at fault. A closed set, listed in docs/http-api.md."""

    BAD_FIELD = "bad_field"  # a value of the wrong type or out of its range
    MISSING_FIELD = "missing_field"
    UNKNOWN_FIELD = "unknown_field"
    INVALID_TEXT = "invalid_text"  # NUL, or half of a surrogate pair
    BAD_PART_ID = "bad_part_id"
    UNKNOWN_PART = "unknown_part"
    DUPLICATE_PART = "duplicate_part"
    WRONG_SCOPE = "wrong_scope"
    REPLACE_TOOL = "replace_tool"
    REPLACE_BREAKS_PAIR = "replace_breaks_pair"
    EMPTY_REPLACEMENT = "empty_replacement"
    NO_USER_MESSAGE = "no_user_message"
    STARTS_WITH_ASSISTANT = "starts_with_assistant"
    ENDS_WITH_ASSISTANT = "ends_with_assistant"
    UNPAIRED_TOOL_USE = "unpaired_tool_use"  # a call without a result
    UNPAIRED_TOOL_RESULT = "unpaired_tool_result"  # a result without a call
    DUPLICATE_TOOL_USE_ID = "duplicate_tool_use_id"
    DUPLICATE_TOOL_RESULT = "duplicate_tool_result"  # a second result of one call
    RESULT_MOVED = "result_moved"  # stands right after its call on the wire
    RESULT_BEFORE_TEXT = "result_before_text"  # results come first on the wire
    BAD_TOOL_ARGUMENTS = "bad_tool_arguments"  # a call's input is no JSON object
    BAD_TOOL_ID = "bad_tool_id"  # an id the provider refuses, rewritten on the wire
    BAD_TOOL_NAME = "bad_tool_name"
    DUPLICATE_TOOL_NAME = "duplicate_tool_name"
    BAD_TOOL_SCHEMA = "bad_tool_schema"
    BAD_BLOCK_NAME = "bad_block_name"  # the name of a system block
    DUPLICATE_BLOCK_NAME = "duplicate_block_name"
    BAD_MODEL = "bad_model"
    BAD_PATH = "bad_path"
    UNSIGNED_THINKING = "unsigned_thinking"
    FOREIGN_THINKING = "foreign_thinking"  # signed by another model
    EMPTY_TEXT = "empty_text"  # a text block of nothing or white space, a picture or document of nothing
    EMPTY_MESSAGE = "empty_message"  # nothing of it is left to send
    BLOCK_NOT_TAKEN = "block_not_taken"  # the provider has no such block, or refuses it at its place
    UNKNOWN_BLOCK = "unknown_block"  # kept as it came
    TOOL_BLOCKS_AS_TEXT = "tool_blocks_as_text"
    TOOL_CHOICE_DROPPED = "tool_choice_dropped"
    SYSTEM_IN_HISTORY = "system_in_history"
    PARAM_NOT_TAKEN = "param_not_taken"
    FILE_CUT = "file_cut"  # over the size a part may have
    FILE_MISSING = "file_missing"
    TOO_MANY_FILES = "too_many_files"
    TOO_MANY_TOOLS = "too_many_tools"  # more than the provider takes
    BAD_SKILL = "bad_skill"  # front matter that cannot be read
    IN_SUMMARY = "in_summary"
    NOT_IN_CONTEXT = "not_in_context"
    BAD_LINE = "bad_line"  # a line of an import that cannot be read
    SIDE_CHAIN = "side_chain"
    UNKNOWN_FORMAT = "unknown_format"
    IDEMPOTENCY_KEY_REUSED = "idempotency_key_reused"
    NO_PROVIDER_KEY = "no_provider_key"  # the server has no key for the model's provider
    CONTEXT_TOO_LONG = "context_too_long"  # far more tokens than the model's window holds
    NOTHING_TO_SUMMARIZE = "nothing_to_summarize"  # what the agent keeps is all that there is
    TOO_MANY_VARIANTS = "too_many_variants"  # a batch of more tries than one may have


@dataclass(frozen=True, slots=True)
class Detail:
    """One thing at fault: which part or place, why, and what would mend it. Never content."""

    reason: Reason
    message: str
    part: str | None = None
    pointer: str | None = None  # RFC 6901, into the request body


class HangoError(Exception):
    """Something failed inside hango."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal"

    def __init__(self, message: str | None = None, *, errors: Sequence[Detail] = ()) -> None:
        super().__init__(message or (type(self).__doc__ or "").split("\n\n")[0])
        self.errors = tuple(errors)

    @property
    def closed_code(self) -> str:
        """The one code for programs."""
        return self.code


class Malformed(HangoError):
    """The body is not valid JSON."""

    status, code = 400, "not_json"


class TooDeep(Malformed):
    """The body is nested more than 64 levels deep."""

    code = "too_deep"


class Unauthenticated(HangoError):
    """The API key is missing, unknown or revoked. Send `Authorization: Bearer <api key>`."""

    status, code = 401, "unauthenticated"


class QuotaExceeded(HangoError):
    """The tenant's token quota for this month is used up."""

    status, code = 402, "quota_exceeded"


class NotFound(HangoError):
    """There is no such thing here."""

    status, code = 404, "not_found"


class Conflict(HangoError):
    """The thing was changed or is in use."""

    status, code = 409, "conflict"


class RunActive(Conflict):
    """A run of this session is going on. Wait for its end, or cancel it."""

    code = "run_active"


class PreconditionFailed(HangoError):
    """The thing changed since it was read. Read it again, then repeat the change."""

    status, code = 412, "precondition_failed"


class TooLarge(HangoError):
    """The body is larger than is taken here."""

    status, code = 413, "too_large"


class Invalid(HangoError):
    """A rule is broken."""

    status, code = 422, "invalid"

    @property
    def closed_code(self) -> str:
        """The first detail's reason: programs branch on it without looking into `errors`."""
        return self.errors[0].reason.value if self.errors else self.code

    @classmethod
    def because(cls, reason: Reason, message: str, *, part: str | None = None, pointer: str | None = None) -> Invalid:
        return cls(message, errors=[Detail(reason, message, part, pointer)])


class RateLimited(HangoError):
    """Too many requests with this API key."""

    status, code = 429, "rate_limited"

    def __init__(self, message: str | None = None, *, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after  # seconds


class TooManyTries(RateLimited):
    """The tenant has as many tries waiting and running as it may have."""

    code = "too_many_tries"


class ProviderFault(StrEnum):
    """How a provider failed. The values are codes of a try."""

    UNREACHABLE = "provider_unreachable"  # no connection, nothing was sent: refused, no such host
    RATE_LIMITED = "provider_rate_limited"  # 429: the call was not taken
    OVERLOADED = "provider_overloaded"  # 529: the call was not taken
    REFUSED = "provider_refused"  # any other 4xx
    ERROR = "provider_error"  # 5xx, and statuses that say neither yes nor no
    PROTOCOL = "provider_protocol"  # an answer that is cut, even before it began, or cannot be read
    TOO_LARGE = "response_too_large"


class ProviderFailed(HangoError):
    """The model's provider did not answer as it should."""

    status, code = 502, "provider_failed"

    def __init__(
        self,
        message: str | None = None,
        *,
        fault: ProviderFault = ProviderFault.PROTOCOL,
        http_status: int | None = None,
        retry_after: float | None = None,
        request_id: str | None = None,
        said: str | None = None,
    ) -> None:
        super().__init__(message)
        self.fault = fault
        self.http_status = http_status  # None when there was no answer
        self.retry_after = retry_after  # seconds, as the provider asks
        self.request_id = request_id
        self.said = said  # the provider's own words without any key; content, so never logged


class Unavailable(HangoError):
    """A service that hango needs is down. Try again in a moment."""

    status, code = 503, "unavailable"


class ProviderTimeout(HangoError):
    """The model's provider did not answer in time."""

    status, code = 504, "provider_timeout"
