"""What is said at the first Ctrl-C."""

from __future__ import annotations

STOPPING_MESSAGE = "stopping; press Ctrl-C again to stop at once"
