"""The commands that run hango itself: an API process, migrations, tenants. They need the database, not the API."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from types import FrameType
from typing import Annotated

import typer

from hango.cli import output
from hango.cli.api_process import listen
from hango.cli.child import told_services
from hango.cli.output import Line
from hango.cli.services import all_services, database, owner_url
from hango.config import Settings
from hango.errors import Conflict
from hango.migrations import runner
from hango.store import system
from hango.store.connection import Store
from hango.store.system import NewTenant

GRACE_SECONDS = 10  # for the answers under way when the process is told to end

migrate_app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)
tenant_app = typer.Typer(add_completion=False, rich_markup_mode=None, no_args_is_help=True)


def serve(
    fd: Annotated[int | None, typer.Option(hidden=True, help="A listening socket that was handed over.")] = None,
) -> None:
    """Start one API process at HANGO_HOST and HANGO_PORT, until it is told to end. It migrates nothing.

    Example: HANGO_DATABASE_URL=postgresql://... HANGO_REDIS_URL=redis://... hango serve
    """
    settings = Settings.from_env()
    if fd is not None:
        serve_for_up(settings, fd)
        return
    with listen(settings.host, settings.port, tries=1) as listener, all_services(settings, share=True) as services:
        require_migrated(services.settings)
        run_api(services.settings, listener)


def require_migrated(settings: Settings) -> None:
    """Raises Conflict where the tables are missing or of an older hango: every request would fail."""
    assert settings.database_url is not None
    missing = [one for one in runner.status(settings.database_url.reveal()) if one.applied_at is None]
    if missing:
        raise Conflict(f"The database lacks {len(missing)} migrations; run `hango migrate up` first.")


def serve_for_up(settings: Settings, fd: int) -> None:
    """The child of `hango up`: it loads its libraries while the services start, then hears where they are."""
    import hango.api.app  # noqa: F401

    named = told_services(settings)
    if named is None:
        return
    with socket.socket(fileno=fd) as listener:
        run_api(named, listener)


def run_api(settings: Settings, listener: socket.socket) -> None:
    """Answers until SIGTERM or SIGINT, which are a good end. Raises WrongSetting for a table of models that is none."""
    import uvicorn

    from hango import logs
    from hango.api.app import create_app
    from hango.api.patience import Patient
    from hango.chain.models import Models

    Models.load(settings.models)  # a wrong file ends the process with its sentence, which uvicorn would swallow
    # uvicorn answers what is under way, then hands the signal on: to this, so that the services end in order too.
    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, _end)
    logs.setup(settings)
    app = create_app(settings)
    config = uvicorn.Config(
        app,
        http=Patient,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            app.state.runtime.waiters.release()  # those who wait would use up the time of the answers under way
            await super().shutdown(sockets)

    Server(config).run(sockets=[listener])


def _end(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)


@migrate_app.callback()
def migrate() -> None:
    """Bring the database up or down, or show where it stands.

    Works on HANGO_MIGRATE_DATABASE_URL, else HANGO_DATABASE_URL, else the embedded database.
    """


@migrate_app.command("up")
def migrate_up(
    target: Annotated[int | None, typer.Option("--to", min=0, help="The last migration to apply.")] = None,
) -> None:
    """Apply what is missing. Example: hango migrate up"""
    with owner_url(Settings.from_env()) as url:
        done = runner.up(url, target)
    _tell("applied", done)


@migrate_app.command("down")
def migrate_down(
    target: Annotated[
        int | None,
        typer.Option("--to", min=0, help="The last migration to keep; 0 keeps none. Default: all but the last."),
    ] = None,
) -> None:
    """Revert the last migration, or all above the given one, with their data. Example: hango migrate down --to 6"""
    with owner_url(Settings.from_env()) as url:
        if target is None:
            applied = [one.version for one in runner.status(url) if one.applied_at]
            target = max(applied, default=1) - 1
        done = runner.down(url, target)
    _tell("reverted", done)


@migrate_app.command("status")
def migrate_status() -> None:
    """List the migrations and when each was applied. Example: hango migrate status"""
    with owner_url(Settings.from_env()) as url:
        found = runner.status(url)
    width = max(len(one.name) for one in found)
    output.emit(
        Line.of(f"{one.name:{width}}  {one.applied_at.isoformat(timespec='seconds') if one.applied_at else 'missing'}")
        for one in found
    )


@tenant_app.callback()
def tenant() -> None:
    """Create tenants."""


@tenant_app.command("create")
def tenant_create(
    name: Annotated[str, typer.Option("--name", help="What people call it.")],
    quota: Annotated[
        int | None, typer.Option("--quota", min=0, help="Tokens per calendar month; none by default.")
    ] = None,
) -> None:
    """Create a tenant and its first admin; prints {tenant_id, user_id, api_key} as JSON. The key is shown this once.

    Example: hango tenant create --name workshop --quota 5000000
    """
    with database(Settings.from_env()) as services:
        require_migrated(services.settings)
        made = make_tenant(services.settings, name, quota)
    shown = {"tenant_id": str(made.tenant_id), "user_id": str(made.user_id), "api_key": made.api_key}
    output.emit([Line.of(json.dumps(shown))])


def make_tenant(settings: Settings, name: str, quota_tokens: int | None = None) -> NewTenant:
    """A tenant with one admin and one key. `settings` name the database."""

    async def make() -> NewTenant:
        assert settings.database_url is not None
        store = await Store.open(settings.database_url.reveal())
        try:
            async with store.system() as scope:
                return await system.create_tenant(scope, name, quota_tokens=quota_tokens)
        finally:
            await store.close()

    return asyncio.run(make())


def _tell(verb: str, names: list[str]) -> None:
    output.emit(Line.of(f"{verb} {name}") for name in names)
    if not names:
        output.note(f"hango: nothing to be {verb}.")
