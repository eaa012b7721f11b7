"""What libraries have to say while a service runs: one line each, on standard error, for a journal."""

from __future__ import annotations

import logging

_LONGEST_LINE = 500
# What Dask says when a member, a user or the scheduler is gone: the service tells that in a message of its own.
_SAID_BETTER = (
    "marked as failed because",
    "Closed comm",
    "Received heartbeat from unregistered worker",
    "Failed to communicate with scheduler during heartbeat",
    "Scheduler was unaware of this worker",
)


class _OneLine(logging.Formatter):
    """The message and, where there was an exception, its last line."""

    def format(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        if record.exc_info is not None and record.exc_info[1] is not None:
            error = record.exc_info[1]
            text = f"{text} ({type(error).__name__}: {error})"
        return f"{record.levelname.lower()}: {record.name}: {' '.join(text.split())[:_LONGEST_LINE]}"


def _is_news(record: logging.LogRecord) -> bool:
    text = record.getMessage()
    return not any(words in text for words in _SAID_BETTER)


def log_to_stderr() -> None:
    """From now on warnings and errors of libraries are single lines on standard error; nothing else of theirs is."""
    # It sets its own handlers up when it is first imported.
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
