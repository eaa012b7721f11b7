"""A run's page over HTTP, on this machine alone; it is drawn again whenever the run has recorded something."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Callable
from pathlib import Path

from autotune_loop.report.recorded_run import read_recorded_run, run_version
from autotune_loop.report.run_page import PageOptions, print_page
from targets.errors import RunFolderError, UsageError


class ReportServer:
    """Serves `/` (the page) and `/version` (changes with the run) on the loopback interface.

    Args:
        port: 0 takes a free one.

    Raises:
        UsageError: the port is taken.
        RunFolderError: the folder holds no run.
    """

    def __init__(self, folder: Path, options: PageOptions, port: int = 0) -> None:
        self._folder = folder
        self._options = options
        self._lock = threading.Lock()
        self._page: tuple[str, bytes] = ("", b"")
        self.page()
        try:
            self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), _handler_for(self))
        except OSError as error:
            raise UsageError(
                f"Port {port} cannot be used: {error.strerror}.", next_step="Choose another with --port."
            ) from error

    @property
    def address(self) -> str:
        """What to open in a browser."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/"

    @property
    def port(self) -> int:
        """The port that was taken."""
        return int(self._server.server_address[1])

    def page(self) -> bytes:
        """Return the page of the run as it is now.

        Raises:
            RunFolderError: the folder is gone or damaged.
        """
        with self._lock:
            version = run_version(self._folder)
            if version != self._page[0]:
                self._page = (version, print_page(read_recorded_run(self._folder), self._options).encode())
            return self._page[1]

    def version(self) -> str:
        """Return a text that changes with the run.

        Raises:
            RunFolderError: the folder is gone.
        """
        return run_version(self._folder)

    def serve_forever(self) -> None:
        """Answer until `close` is called from another thread, or an exception such as KeyboardInterrupt."""
        self._server.serve_forever(poll_interval=0.2)

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()


def _handler_for(server: ReportServer) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        """Answers two paths; refuses anything else, and other host names (DNS rebinding)."""

        def do_GET(self) -> None:
            """One request."""
            if self.headers.get("Host") not in {f"127.0.0.1:{server.port}", f"localhost:{server.port}"}:
                self.send_error(403)
            elif self.path == "/":
                self._answer(server.page, "text/html; charset=utf-8")
            elif self.path == "/version":
                self._answer(lambda: server.version().encode(), "text/plain; charset=utf-8")
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

    return Handler
