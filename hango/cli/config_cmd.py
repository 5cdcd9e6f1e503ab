"""`hango config`: the settings in force."""

from __future__ import annotations


def config() -> None:
    """Show the settings in force, secrets as ***, and where each came from.

    A .env file is read by `hango up` only, so it does not show here.

    Example: HANGO_PORT=9000 hango config
    """
    from dataclasses import replace

    from hango.cli import output, table
    from hango.cli.access import find_access
    from hango.config import Settings, unknown

    settings = Settings.from_env()
    access = find_access(settings)
    rows = []
    for source in settings.sources():
        if settings.up_file.exists() and source.origin == "default":
            if source.name == "HANGO_API_URL":
                source = replace(source, value=access.url, origin="up.json")
            elif source.name == "HANGO_API_KEY" and access.key is not None:
                source = replace(source, value="***", origin="up.json")
        rows.append((source.name, source.origin, source.value))
    output.emit(table.lines(("variable", "from", "value"), rows, width=None))
    for name in unknown():
        output.note(f"{name} is no setting of hango. Look for a slip of the pen.")
