"""What a play-off says of its verdict."""

from __future__ import annotations

from collections.abc import Sequence

from autotune_loop.play_off.verdict import CONFIDENCE, Comparison, VerdictReason

NO_TIME = "Unconfirmed: there was no time left for the turns that a verdict needs."
STOPPED = "Unconfirmed: the play-off was stopped."
NOTHING_TIMED = "Unconfirmed: no device timed the contenders to the end."
NO_DEVICE = "Unconfirmed: no device was left to the end."


def unopposed(challenger: str) -> str:
    """There was nothing to replace."""
    return f"{_capital(challenger)} is the best; there is neither a default nor an incumbent to compare it with."


def no_challenger(baseline: str) -> str:
    """Nothing else was left."""
    return f"{_capital(baseline)} stays: there was nothing else to time beside it."


def decided(
    reason: VerdictReason,
    challenger: str,
    baseline: str,
    compared: Comparison,
    worst_tolerance: float,
    lost: Sequence[str],
) -> str:
    """The two were compared."""
    speed, turns = compared.estimate.speed_text(baseline), f"{compared.turns} turns"
    stays = f"{_capital(baseline)} stays:"
    does = "does" if len(lost) == 1 else "do"
    gone = f" {', '.join(lost)} did not time it to the end and {does} not count." if lost else ""
    match reason:
        case VerdictReason.FASTER:
            return f"{_capital(challenger)} is {speed}, in {turns} on {', '.join(compared.by_device)}.{gone}"
        case VerdictReason.SLOWER_ON_A_DEVICE:
            slower = ", ".join(f"{d}: {compared.by_device[d].speed_text()}" for d in compared.slower_devices)
            limit = f"it is not shown to be at most {worst_tolerance:.1%} slower on every device"
            return f"{stays} {challenger} is {speed} over all devices, but {limit} ({slower}).{gone}"
        case VerdictReason.NOT_FASTER:
            return f"{stays} nothing beat it; the best, {challenger}, is {speed}, in {turns}.{gone}"
        case VerdictReason.NOT_PROVEN:
            share = f"{CONFIDENCE * 100:.0f} % confidence"
            return f"{stays} {turns} do not show with {share} that {challenger} is faster; it is {speed}.{gone}"
    return f"Unconfirmed: the worst case needs every device.{gone}"


def _capital(text: str) -> str:
    """Labels of ours begin messages as words do; names stay as they are."""
    return text[:1].upper() + text[1:] if text.startswith("the ") else text
