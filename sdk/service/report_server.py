"""A run's page over HTTP, on this machine alone; it is drawn again whenever the run has recorded something."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Callable
from pathlib import Path

from halide_autotune.autotune_loop.report.recorded_run import read_recorded_run, run_version
from halide_autotune.autotune_loop.report.run_page import PageOptions, print_page
from halide_autotune.sdk.project.next_commands import next_commands
from halide_autotune.targets.errors import RunFolderError, UsageError, os_error_as


class ReportServer(http.server.ThreadingHTTPServer):
    """Serves `/` (the page) and `/version` (changes with the run) on the loopback interface.

    Args:
        port: 0 takes a free one.

    Raises:
        UsageError: the port is taken.
        RunFolderError: the folder holds no run.
    """

    def __init__(self, folder: Path, options: PageOptions, port: int = 0) -> None:
        self.folder = folder
        self._options = options
        self._lock = threading.Lock()
        self._page: tuple[str, bytes] = ("", b"")
        self.page()
        with os_error_as(UsageError, f"Port {port} cannot be used", next_step="Choose another with --port."):
            super().__init__(("127.0.0.1", port), _Handler)

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"http://127.0.0.1:{self.server_port}/"

    def page(self) -> bytes:
        """Return the page of the run as it is now.

        Raises:
            RunFolderError: the folder is gone or damaged.
        """
        with self._lock:
            version = run_version(self.folder)
            if version != self._page[0]:
                run = read_recorded_run(self.folder)
                self._page = (version, print_page(run, self._options, next_commands(run)).encode(errors="replace"))
            return self._page[1]


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers two paths; refuses anything else, and other host names (DNS rebinding)."""

    server: ReportServer

    def do_GET(self) -> None:
        """One request."""
        port = self.server.server_port
        if self.headers.get("Host") not in {f"127.0.0.1:{port}", f"localhost:{port}"}:
            self.send_error(403)
        elif self.path == "/":
            self._answer(self.server.page, "text/html; charset=utf-8")
        elif self.path == "/version":
            self._answer(lambda: run_version(self.server.folder).encode(), "text/plain; charset=utf-8")
        else:
            self.send_error(404)

    def _answer(self, make: Callable[[], bytes], kind: str) -> None:
        try:
            body = make()
        except RunFolderError as error:
            self.send_error(503, explain=str(error))
            return
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Nothing is logged."""
