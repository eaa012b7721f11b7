"""The log of a service on standard output, and the messages of libraries on standard error: one line each."""

from __future__ import annotations

import logging

_LONGEST_LINE = 500
# Dask logs these when a worker, a user or the scheduler is gone; the service has a message of its own for that.
_LOGGED_BY_US = (
    "marked as failed because",
    "Closed comm",
    "Received heartbeat from unregistered worker",
    "Failed to communicate with scheduler during heartbeat",
    "Scheduler was unaware of this worker",
)


class _OneLine(logging.Formatter):
    """Formats a message, with its exception if there is one, as one line."""

    def format(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        if record.exc_info is not None and record.exc_info[1] is not None:
            error = record.exc_info[1]
            text = f"{text} ({type(error).__name__}: {error})"
        return f"{record.levelname.lower()}: {record.name}: {' '.join(text.split())[:_LONGEST_LINE]}"


def _is_news(record: logging.LogRecord) -> bool:
    text = record.getMessage()
    return not any(words in text for words in _LOGGED_BY_US)


def log_to_stderr() -> None:
    """Print warnings and errors of libraries as single lines on standard error, and nothing else of theirs."""
    # The first import sets its own handlers up, which are replaced below.
    import distributed  # noqa: F401 – the import alone does it

    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine())
    handler.addFilter(_is_news)
    for name in list(logging.root.manager.loggerDict):
        if name.startswith("distributed."):
            logger = logging.getLogger(name)
            logger.handlers.clear()
            logger.setLevel(logging.NOTSET)
            logger.propagate = True
    for name in ("distributed", "tornado", "asyncio", "paramiko"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(logging.WARNING)
        logger.propagate = False


def log_line(text: str) -> None:
    """Print one line of a service's log at once."""
    print(f"{text}\n", end="", flush=True)
