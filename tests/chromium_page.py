"""A page in the real Chromium, headless, spoken to over its debugging protocol."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from tornado.websocket import WebSocketClientConnection, websocket_connect

CHROMIUM = shutil.which("chromium")
# Nothing of this may ask the network: the page is to open without one.
_ARGUMENTS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --disable-dev-shm-usage --remote-debugging-port=0"
).split()
_START_LIMIT_S = 120.0
_ANSWER_LIMIT_S = 120.0

# What Chromium answers where a page that is just being left was asked.
_PAGE_IS_LEFT = ("context", "navigated")


class _RefusedError(Exception):
    """Chromium's answer to what it does not do."""


class ChromiumPage:
    """Opens addresses and evaluates JavaScript; a context manager.

    Attributes:
        complaints: what the page's scripts threw or wrote as errors.
    """

    def __init__(self, folder: Path) -> None:
        self._profile = folder / "chromium"
        self._loop = asyncio.new_event_loop()
        self._next_id = 0
        self.complaints: list[str] = []

    def __enter__(self) -> ChromiumPage:
        assert CHROMIUM is not None, "chromium is not installed"
        command = [CHROMIUM, *_ARGUMENTS, f"--user-data-dir={self._profile}", "about:blank"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self._socket = self._loop.run_until_complete(self._connect())
            for domain in ("Page", "Runtime", "Log"):
                self._ask(f"{domain}.enable")
        except BaseException:
            self.__exit__()
            raise
        return self

    async def _connect(self) -> WebSocketClientConnection:
        from tornado.httpclient import AsyncHTTPClient

        told = self._profile / "DevToolsActivePort"
        until_s = time.monotonic() + _START_LIMIT_S
        while not (told.is_file() and told.read_text().count("\n")):
            assert time.monotonic() < until_s and self._process.poll() is None, "chromium did not start"
            await asyncio.sleep(0.05)
        port = told.read_text().split()[0]
        while True:
            answer = await AsyncHTTPClient().fetch(
                f"http://127.0.0.1:{port}/json/list", request_timeout=_START_LIMIT_S, connect_timeout=_START_LIMIT_S
            )
            pages = [target for target in json.loads(answer.body) if target["type"] == "page"]
            if pages:
                return await websocket_connect(pages[0]["webSocketDebuggerUrl"], max_message_size=2**26)
            assert time.monotonic() < until_s, "chromium opened no page"

    def open(self, address: str) -> None:
        """Load a page; returns when it is loading."""
        self._ask("Page.navigate", url=address)

    def show_as(self, *, width_px: int = 1280, height_px: int = 900, dark: bool = False, scripts: bool = True) -> None:
        """Have the next pages in a window of this size, for a reader with these settings."""
        self._ask(
            "Emulation.setDeviceMetricsOverride", width=width_px, height=height_px, deviceScaleFactor=1, mobile=False
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._ask("Emulation.setEmulatedMedia", features=[scheme])
        self._ask("Emulation.setScriptExecutionDisabled", value=not scripts)

    def let_scripts_run(self) -> None:
        """In a page that was opened without, too, so that it can be examined."""
        self._ask("Emulation.setScriptExecutionDisabled", value=False)

    def press(self, key: str) -> None:
        """Press a key that writes nothing, such as Tab, or Enter."""
        text = {"Enter": "\r"}.get(key, "")
        code = {"Tab": 9, "Enter": 13}[key]
        for kind in ("keyDown", "keyUp"):
            self._ask("Input.dispatchKeyEvent", type=kind, key=key, text=text, windowsVirtualKeyCode=code)

    def screenshot(self) -> bytes:
        """What is to be seen in the window, as PNG."""
        return base64.b64decode(self._ask("Page.captureScreenshot")["data"])

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, awaited where it is a promise."""
        answer = self._ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait_for(self, expression: str) -> Any:
        """Evaluate again and again until the value is true; returns it."""
        until_s = time.monotonic() + _ANSWER_LIMIT_S
        while not (value := self._evaluate_between_pages(expression)):
            assert time.monotonic() < until_s, f"{expression} never came true; the page said {self.complaints}"
            time.sleep(0.05)
        return value

    def _evaluate_between_pages(self, expression: str) -> Any:
        """As `evaluate`; None while one page makes way for another."""
        try:
            return self.evaluate(expression)
        except _RefusedError as refused:
            assert any(words in str(refused) for words in _PAGE_IS_LEFT), refused
            return None

    def _ask(self, method: str, **parameters: object) -> dict[str, Any]:
        return self._loop.run_until_complete(asyncio.wait_for(self._exchange(method, parameters), _ANSWER_LIMIT_S))

    async def _exchange(self, method: str, parameters: dict[str, object]) -> dict[str, Any]:
        self._next_id += 1
        await self._socket.write_message(json.dumps({"id": self._next_id, "method": method, "params": parameters}))
        while True:
            text = await self._socket.read_message()
            assert text is not None, "chromium closed the connection"
            message = json.loads(text)
            if message.get("id") == self._next_id:
                if "error" in message:
                    raise _RefusedError(message["error"])
                result: dict[str, Any] = message["result"]
                return result
            self._heed(message)

    def _heed(self, event: dict[str, Any]) -> None:
        if event.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(event["params"]["exceptionDetails"]))
        elif event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
            self.complaints.append(event["params"]["entry"]["text"])

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._loop.close()
