"""The HTTP client of the public API: one request, the reply's bytes, and one sentence when it fails."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Any
from uuid import uuid4

import httpx2

from hango import __version__
from hango.cli.access import Access, find_access
from hango.cli.exits import ExitCode, Failure
from hango.cli.own_command import own_command
from hango.config import Settings

CONNECT_SECONDS = 5.0
# An inspect of the longest sessions stays far under it; an import has no limit, the server may need minutes.
ANSWER_SECONDS = 60.0
# Between two questions to an API that is away for a moment, where it does not say itself how long.
PAUSE_SECONDS = 0.5
PROBLEM_JSON = "application/problem+json"


class Missing(Failure):
    """There is no such thing for the caller."""


class Changed(Failure):
    """Somebody else changed the thing since it was read."""


class Refused(Failure):
    """The API's refusal; `reason` is its closed code."""

    def __init__(self, sentence: str, *, reason: str, more: Sequence[str] = (), pause: float | None = None) -> None:
        super().__init__(sentence, more=more, pause=pause)
        self.reason = reason


class Unanswered(Failure):
    """The request went out and no reply came: whether it was carried out is not known."""


@dataclass(frozen=True, slots=True)
class Tagged:
    """A reply's body and its ETag."""

    body: bytes
    tag: str


class Client:
    """Speaks to one API. Every method returns a reply's body or raises Failure; redirects are not followed.

    No proxy of the environment is used: the key goes to the API and nowhere else.
    """

    def __init__(self, access: Access) -> None:
        self.access = access
        headers = {"User-Agent": f"hango/{__version__}", "Accept": "application/json"}
        if access.key is not None:
            if not (access.key.isascii() and access.key.isprintable()):  # no header can carry it
                raise Failure(f"the key from {access.origin} is none of hango's. Set HANGO_API_KEY to a valid one.")
            headers["Authorization"] = f"Bearer {access.key}"
        timeout = httpx2.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS)
        with _failures(access.url):
            self._http = httpx2.Client(
                base_url=access.url,
                headers=headers,
                timeout=timeout,
                trust_env=False,
                verify=access.url.startswith("https:"),
            )

    @classmethod
    def from_environment(cls) -> Client:
        return cls(find_access(Settings.from_env()))

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def get(
        self,
        path: str,
        query: Mapping[str, str | int | None] | None = None,
        *,
        missing: str | None = None,
        wait: float = 0.0,
    ) -> bytes:
        """The body of a reply to GET. `missing` is the sentence for a 404.

        `wait` is how many seconds the API may hold the answer back, beside what it takes otherwise.
        """
        timeout = httpx2.Timeout(ANSWER_SECONDS + wait, connect=CONNECT_SECONDS)
        with _failures(self.access.url):
            reply = self._http.get(path, params=_given(query), timeout=timeout)
        return self._body(reply, missing)

    def get_tagged(self, path: str, *, missing: str | None = None) -> Tagged:
        """The body of a reply to GET, with the tag for `if_match`."""
        with _failures(self.access.url):
            reply = self._http.get(path)
        return Tagged(self._body(reply, missing), reply.headers.get("ETag", "*"))

    def put(
        self,
        path: str,
        value: Any,
        query: Mapping[str, str | int | None] | None = None,
        *,
        if_match: str | None = None,
        missing: str | None = None,
    ) -> bytes:
        """The body of a reply to PUT. Raises Changed when the thing no longer has the tag."""
        headers = {} if if_match is None else {"If-Match": if_match}
        with _failures(self.access.url):
            reply = self._http.put(path, params=_given(query), json=value, headers=headers)
        if reply.status_code == HTTPStatus.PRECONDITION_FAILED:
            raise Changed(str(_refusal(reply, self.access.url)))
        return self._body(reply, missing)

    def delete(self, path: str, *, missing: str | None = None) -> None:
        """DELETE; the reply has no body."""
        with _failures(self.access.url):
            reply = self._http.delete(path)
        if reply.status_code != HTTPStatus.NO_CONTENT:
            self._body(reply, missing)

    def post(
        self,
        path: str,
        value: Any = None,
        query: Mapping[str, str | int | None] | None = None,
        *,
        missing: str | None = None,
    ) -> bytes:
        """The body of a reply to POST; without a value the request has no body."""
        return self._post(path, value, query, {}, missing)

    def post_once(self, path: str, value: Any, *, missing: str | None = None) -> bytes:
        """POST what must be carried out once: sent again when no reply comes, under the same Idempotency-Key."""
        headers = {"Idempotency-Key": str(uuid4())}
        try:
            return self._post(path, value, None, headers, missing)
        except Unanswered:
            return self._post(path, value, None, headers, missing)

    def upload(
        self,
        path: str,
        query: Mapping[str, str | int | None],
        chunks: Iterable[bytes],
        *,
        missing: str | None = None,
    ) -> bytes:
        """POST a stream of bytes of any length, as they come; waits for the answer as long as it takes."""
        with _failures(self.access.url):
            reply = self._http.post(
                path,
                params=_given(query),
                content=chunks,
                headers={"Content-Type": "application/octet-stream"},
                timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
            )
        return self._body(reply, missing)

    def _post(
        self,
        path: str,
        value: Any,
        query: Mapping[str, str | int | None] | None,
        headers: Mapping[str, str],
        missing: str | None,
    ) -> bytes:
        with _failures(self.access.url):
            reply = self._http.post(path, params=_given(query), json=value, headers=headers)
        return self._body(reply, missing)

    def _body(self, reply: httpx2.Response, missing: str | None) -> bytes:
        if reply.is_success and _media_type(reply) == "application/json":
            return reply.content
        if reply.status_code == HTTPStatus.UNAUTHORIZED:
            raise Failure(self._no_key())
        if reply.status_code == HTTPStatus.NOT_FOUND and missing and _media_type(reply) == PROBLEM_JSON:
            raise Missing(missing)
        raise _refusal(reply, self.access.url)

    def _no_key(self) -> str:
        if self.access.key is None:
            return f"the API at {self.access.url} wants a key. Set HANGO_API_KEY."
        refused = f"the API at {self.access.url} refuses the key from {self.access.origin}."
        return f"{refused} Set HANGO_API_KEY to a valid one."


def _given(query: Mapping[str, str | int | None] | None) -> dict[str, str | int]:
    return {name: value for name, value in (query or {}).items() if value is not None}


@contextmanager
def _failures(url: str) -> Iterator[None]:
    """Failures of the network, as sentences."""
    try:
        yield
    except (httpx2.ConnectError, httpx2.ConnectTimeout):
        raise Failure(
            f"no API at {url}. Start one with `{own_command()} up`, or set HANGO_API_URL.",
            code=ExitCode.NO_API,
            pause=PAUSE_SECONDS,
        ) from None
    except httpx2.TimeoutException:
        raise Unanswered(
            f"the API at {url} did not answer in {ANSWER_SECONDS:.0f} s. Try again.",
            code=ExitCode.WAIT_RAN_OUT,
            pause=PAUSE_SECONDS,
        ) from None
    except httpx2.TransportError:
        raise Unanswered(
            f"the API at {url} broke the connection off. Look at its log, then try again.",
            code=ExitCode.NO_API,
            pause=PAUSE_SECONDS,
        ) from None
    except httpx2.InvalidURL:
        raise Failure(f"{url} is no address of an API. Set HANGO_API_URL.") from None


def _refusal(reply: httpx2.Response, url: str) -> Failure:
    problem = _problem(reply)
    if problem is None:
        what = f"{url} answered {reply.status_code} and is no hango API of this version"
        return Failure(f"{what}. Start one with `{own_command()} up`, or set HANGO_API_URL.")
    sentence = str(problem.get("detail") or problem.get("title") or f"refused with {reply.status_code}")
    more = tuple(
        ": ".join(str(place) for place in (one.get("part") or one.get("pointer"), one.get("message")) if place)
        for one in problem.get("errors") or ()
        if isinstance(one, dict) and one.get("message") != sentence
    )
    wait = reply.headers.get("Retry-After")
    if wait is not None and reply.status_code == HTTPStatus.TOO_MANY_REQUESTS:
        sentence += f" Try again in {wait} s."
    return Refused(sentence, reason=str(problem.get("code")), more=more, pause=_pause(reply))


def _pause(reply: httpx2.Response) -> float | None:
    if reply.status_code not in {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}:
        return None
    wait = reply.headers.get("Retry-After", "")
    return float(wait) if wait.isascii() and wait.isdecimal() else PAUSE_SECONDS


def _problem(reply: httpx2.Response) -> dict[str, Any] | None:
    if _media_type(reply) != PROBLEM_JSON:
        return None
    try:
        found = json.loads(reply.content)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _media_type(reply: httpx2.Response) -> str:
    return str(reply.headers.get("Content-Type", "")).partition(";")[0].strip().lower()
