"""An earlier try or batch by its id; an id of the other kind is said so, with the command that shows it."""

from __future__ import annotations

from urllib.parse import quote

from hango.cli.client import Client, Missing
from hango.cli.exits import Failure
from hango.cli.own_command import line, own_command


def a_try(client: Client, id_: str) -> bytes:
    """The API's reply. Raises Failure."""
    listed = f"`{own_command()} context tries --session ID` lists them."
    try:
        return client.get(_path("tries", id_), missing=f"no try {id_} that you may read. {listed}")
    except Missing:
        if _is_there(client, "try-batches", id_):
            raise Failure(f"this is a batch: use `{line('context', 'compare', '--show', id_)}`.") from None
        raise


def a_batch(client: Client, id_: str) -> bytes:
    """The API's reply. Raises Failure."""
    listed = f"`{own_command()} context tries --session ID --batches` lists them."
    try:
        return client.get(_path("try-batches", id_), missing=f"no batch {id_} that you may read. {listed}")
    except Missing:
        if _is_there(client, "tries", id_):
            raise Failure(f"this is a try: use `{line('context', 'try', '--show', id_)}`.") from None
        raise


def _is_there(client: Client, kind: str, id_: str) -> bool:
    try:
        client.get(_path(kind, id_), missing=f"no {id_}.")
    except Missing:
        return False
    return True


def _path(kind: str, id_: str) -> str:
    return f"/v1/{kind}/{quote(id_, safe='')}"
