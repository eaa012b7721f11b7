"""Where the time of schedules goes: the table `func_shares` of `tuning.db`, which only some runs have."""

from __future__ import annotations

import json
from collections.abc import Mapping

FUNC_SHARES = "func_shares"
FUNC_SHARES_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS {FUNC_SHARES} (symbol TEXT NOT NULL, shares TEXT NOT NULL, at_unix_s REAL NOT NULL)"""
FUNC_SHARES_SQL = f"SELECT symbol, shares FROM {FUNC_SHARES} ORDER BY rowid"


def shares_text(shares: Mapping[str, float]) -> str:
    """What the database keeps of a schedule."""
    return json.dumps(dict(shares))


def shares_row(symbol: object, text: object) -> tuple[str, dict[str, float]]:
    """A schedule, and the share of each Func, by its name in Halide, of a call's time.

    Raises:
        ValueError, TypeError, AttributeError: the row is damaged.
    """
    return str(symbol), {str(name): float(share) for name, share in json.loads(str(text)).items()}
