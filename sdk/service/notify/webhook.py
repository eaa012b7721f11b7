"""A notifier that is a URL."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from halide_autotune.targets.errors import UsageError

LIMIT_S = 10.0
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


def is_url(text: str) -> bool:
    """Whether a text is meant as a URL: it need not be one that can be used."""
    return "://" in text


@dataclass(frozen=True)
class WebhookNotifier:
    """Posts the document to a URL, which may be a secret as a whole: only its host is ever shown."""

    url: str = field(repr=False)
    host: str

    @classmethod
    def at(cls, url: str, where: str) -> WebhookNotifier:
        """Return the notifier of a URL.

        Raises:
            UsageError: it is not https, or not a URL.
        """
        try:
            parts = urlsplit(url)
            host, is_safe = parts.hostname or "", parts.scheme == "https"
            is_safe = is_safe or (parts.scheme == "http" and host in _THIS_MACHINE)
            parts.port  # noqa: B018 – raises where it is none
        except ValueError:
            host, is_safe = "", False
        if not is_safe or not host or not url.isascii() or not url.isprintable() or " " in url:
            raise UsageError(
                f"{where}: the URL cannot be used (it is not shown, because it may be a secret).",
                next_step="Give one that starts with https:// and a host; http:// is for this machine alone.",
            )
        return cls(url, host)

    @property
    def label(self) -> str:
        """The URL's host."""
        return self.host

    def send(self, document: str, limit_s: float = LIMIT_S) -> str:
        """See `Notifier.send`. No redirection is followed, since it may lead to another host."""
        # In a thread, because the limits of sockets are for each wait: a server that sends a byte a second has none.
        told: list[str] = []
        posting = threading.Thread(target=lambda: told.append(self._post(document, limit_s)), daemon=True)
        posting.start()
        posting.join(limit_s)
        return told[0] if told else f"it did not answer within {limit_s:.0f} s"

    def _post(self, document: str, limit_s: float) -> str:
        headers = {"Content-Type": "application/json", "User-Agent": "halide-autotune-sdk"}
        request = urllib.request.Request(self.url, document.encode(), headers, method="POST")
        # What is on this machine is not behind a proxy.
        proxies = [urllib.request.ProxyHandler({})] if self.host in _THIS_MACHINE else []
        try:
            with urllib.request.build_opener(_NoRedirection(), *proxies).open(request, timeout=limit_s):
                return ""
        except urllib.error.HTTPError as error:
            error.close()
            return f"it answered with status {error.code}"
        except urllib.error.URLError as error:
            reason = error.reason
            return f"it cannot be reached: {getattr(reason, 'strerror', None) or type(reason).__name__}"
        except Exception as error:  # its text may have the URL
            return f"it cannot be reached: {type(error).__name__}"


class _NoRedirection(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None
