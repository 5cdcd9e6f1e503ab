"""A batch of tries over the API: what it would take, sent when the person agrees, and the tries it came to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

import msgspec

from hango.cli import asking, compare_variants, output, pending, replies
from hango.cli.client import Client, Refused
from hango.cli.compare_variants import Variant
from hango.cli.exits import ExitCode, Failure
from hango.cli.override_sets import no_session
from hango.cli.own_command import line
from hango.cli.pending import Work
from hango.cli.progress import bar
from hango.cli.text import number
from hango.cli.ticker import Ticker
from hango.cli.try_replies import Batch, Quote
from hango.cli.try_report import cost


def send(
    client: Client, session: str, variants: Sequence[Variant], *, repeats: int, label: str | None, yes: bool
) -> bytes:
    """Say what the batch would take, ask, and send it. Gives its first reply."""
    wanted: dict[str, Any] = {"variants": [one.as_sent() for one in variants], "repeats": repeats}
    if label is not None:
        wanted["label"] = label
    path = f"/v1/sessions/{quote(session, safe='')}/context/try-batches"
    missing = no_session(session)
    listing = line("context", "tries", "--session", session, "--batches")
    try:
        checked = replies.read(client.post(path, wanted, {"check": "true"}, missing=missing), Quote)
        for words in quoted(checked, len(variants), repeats):
            output.note(words)
        if not yes:
            _ask(checked)
        return pending.send(client, path, wanted, word="batch", listing=listing, missing=missing)
    except Refused as refused:
        raise compare_variants.told(refused, variants) from None


def quoted(one: Quote, variants: int, repeats: int) -> Iterator[str]:
    """What a batch would take, in sentences. Pure."""
    times = f" × {number(repeats)}" if repeats > 1 else ""
    tokens = f"{number(one.input_tokens)} tokens in, at most {number(one.output_tokens_most)} out"
    yield f"{_many(variants, 'variant')}{times} = {_many(one.calls, 'call')}, estimated: {tokens}, {_dollars(one)}."
    if one.quota_left is not None:
        yield f"left of this month's quota: {number(one.quota_left)} tokens."


def work_of(id_: str) -> Work[Batch]:
    """A batch as something to wait for."""
    return Work(
        word="batch", path=_path(id_), kind=Batch, look=line("context", "compare", "--show", id_), state=_progress
    )


def tries(client: Client, batch: Batch) -> list[bytes]:
    """The tries of a batch as the API shows each by itself, in the order of its variants: its lists have no answers."""
    ids = [id for variant in batch.variants for id in variant.tries]
    made: list[bytes] = []
    total = max(1, len(ids))
    with Ticker(lambda: f"reading answers {bar(len(made) / total)} {number(len(made))} of {number(total)}"):
        for id in ids:
            path = f"/v1/tries/{quote(id, safe='')}"
            made.append(pending.patiently(partial(client.get, path)))
    return made


def as_json(batch: bytes, of: Sequence[bytes]) -> bytes:
    """The API's replies in one object, each as it came."""
    return msgspec.json.encode({"batch": msgspec.Raw(batch), "tries": [msgspec.Raw(one) for one in of]})


def _ask(checked: Quote) -> None:
    if not asking.someone_there():
        said = "there is no terminal to ask on, so nothing was sent. --yes sends without asking."
        raise Failure(said, code=ExitCode.USAGE)
    try:
        agreed = asking.agreed(f"send {_many(checked.calls, 'call')}?")
    except KeyboardInterrupt:
        output.note("")
        agreed = False
    if not agreed:
        raise Failure("nothing was sent.")


def _dollars(one: Quote) -> str:
    if one.cost_usd is None:
        return "cost unknown"
    least, most = cost(one.cost_usd.least), cost(one.cost_usd.most)
    return least if least == most else f"{least} to {most}"


def _progress(seen: Batch, seconds: float) -> str:
    done = seen.calls - seen.unfinished
    failed = done - seen.counts.get("succeeded", 0)
    words = [f"comparing {bar(done / max(1, seen.calls))} {number(done)} of {number(seen.calls)}"]
    running = seen.counts.get("running", 0)
    words += [f"{number(running)} running"] if running else []
    words += [f"{number(failed)} failed"] if failed else []
    return "  ".join([*words, f"{seconds:.0f} s"]) + pending.hint(queued=not done and not running, seconds=seconds)


def _many(count: int, thing: str) -> str:
    return f"{number(count)} {thing}{'s' * (count != 1)}"


def _path(id_: str) -> str:
    return f"/v1/try-batches/{quote(id_, safe='')}"
