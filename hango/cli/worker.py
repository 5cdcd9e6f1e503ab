"""`hango worker`: one process that makes the model calls of tries."""

from __future__ import annotations

from typing import Annotated

import typer

from hango.cli.child import told_services
from hango.cli.services import all_services
from hango.config import Settings


def worker(
    for_up: Annotated[bool, typer.Option("--for-up", hidden=True, help="Its services come on standard input.")] = False,
) -> None:
    """Start one worker process, which makes the model calls of tries, until it is told to end. It migrates nothing.

    SIGTERM lets the calls under way end first; a second one does not. Example: HANGO_DATABASE_URL=postgresql://...
    HANGO_REDIS_URL=redis://... hango worker
    """
    settings = Settings.from_env()
    if for_up:
        work_for_up(settings)
        return
    with all_services(settings, share=True) as services:
        work(services.settings)


def work_for_up(settings: Settings) -> None:
    """The child of `hango up`: it loads its libraries while the services start, then hears where they are."""
    import hango.workers.main
    import hango.workers.picker  # noqa: F401

    if named := told_services(settings):
        work(named)


def work(settings: Settings) -> None:
    """Raises HangoError, a sentence of what is missing or wrong, before anything is begun."""
    from hango.cli.serve import require_migrated
    from hango.migrations import app_role
    from hango.workers import start_checks
    from hango.workers.main import run
    from hango.workers.picker import make_picker

    assert settings.database_url is not None, "services are named"
    start_checks.check(settings)
    app_role.require_bound(settings.database_url.reveal())
    require_migrated(settings)
    run(settings, make_picker)
