"""The history of one imported session: taken in stretches that are ready to store, watched for what is odd."""

from __future__ import annotations

import re

from hango import jsontext
from hango.chain.digest import digests
from hango.chain.formats.oddities import Watch, check_summary
from hango.chain.formats.transcript import ImportedMessage, ImportedSession
from hango.messages import Message, MessageRole, content_json
from hango.store.messages import NewMessage

# One stretch: enough for few statements, little enough for the memory.
STRETCH_MESSAGES = 500
STRETCH_CHARS = 1024 * 1024
DERIVED_TITLE_CHARS = 80
MODEL_CHARS = 256

_NOT_SHOWN = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")


class History:
    """The messages of one session. `writer` is the model of answers whose file does not name one."""

    def __init__(self, session: ImportedSession, writer: str | None) -> None:
        self.session = session
        self._waiting = iter(session.messages)
        self._writer = writer
        self.ended = False
        self.watch = Watch()
        self.count = 0
        self._first_words = ""
        if session.summary is not None:
            check_summary(session.summary)
        self.first = self.take()

    @property
    def title(self) -> str:
        """The file's title, else the first words of the user in the first stretch."""
        return self.session.title or self._first_words

    def take(self) -> list[NewMessage]:
        """The next messages, ready to store. Raises Invalid that names the part at fault."""
        taken: list[tuple[ImportedMessage, str]] = []
        chars = 0
        while len(taken) < STRETCH_MESSAGES and chars < STRETCH_CHARS:
            message = next(self._waiting, None)
            if message is None:
                self.ended = True
                break
            self.count += 1
            self.watch.see(self.count, message)
            content = content_json(message.content)
            taken.append((message, content))
            chars += len(content)
            self._first_words = self._first_words or _first_words(message)
        written = [Message(m.role, m.content, self._model(m)) for m, _ in taken]
        return [
            NewMessage(
                role=message.role,
                content=content,
                digest=digest,
                model=message.model,
                created_at=given.created_at,
            )
            for message, (given, content), digest in zip(written, taken, digests(written), strict=True)
        ]

    def _model(self, message: ImportedMessage) -> str | None:
        model = message.model or (self._writer if message.role is MessageRole.ASSISTANT else None)
        return model if model and len(model) <= MODEL_CHARS and jsontext.is_text(model) else None


def _first_words(message: ImportedMessage) -> str:
    """The start of what a user says."""
    if message.role is not MessageRole.USER:
        return ""
    texts = (block.view.text or "" for block in message.content if block.type == "text")
    return next((words for text in texts if (words := one_line(text, DERIVED_TITLE_CHARS))), "")


def one_line(text: str, most: int) -> str:
    """The text on one line, without control characters, cut at `most`."""
    return _NOT_SHOWN.sub(" ", text[: 4 * most]).strip()[:most].strip()
