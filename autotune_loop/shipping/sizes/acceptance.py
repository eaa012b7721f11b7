"""Whether a schedule ships, by what became of it at sizes."""

from __future__ import annotations

from autotune_loop.shipping.sizes.outcome import SizeOutcome, SizeVerdict
from autotune_loop.shipping.sizes.trial import TriedSizes
from targets.errors import GeneratorError


def check_acceptance(header: str, tried: TriedSizes, guard: bool) -> None:
    """Make sure that no size fails that must not.

    A size that was asked for must be taken, with a guard or without; a neighbour may be refused by Halide's own checks
    before anything is computed. A wrong output or a crash at any size is the end.

    Raises:
        GeneratorError: the schedule does not ship; the first size is named.
    """
    for index, outcome in enumerate(tried.outcomes):
        if outcome.verdict is SizeVerdict.ACCEPTED:
            continue
        if outcome.verdict is not SizeVerdict.REFUSED:
            raise _refused(header, outcome, "Tune again with another seed, and report it: no schedule may do that.")
        if index < tried.asked and not guard:
            raise _refused(
                header, outcome, "Tune with that size as the estimate, or ship with --guard and a fallback kernel."
            )


def _refused(header: str, outcome: SizeOutcome, next_step: str) -> GeneratorError:
    return GeneratorError(
        f"{header} is not shipped: at {outcome.size} it is {_WORDS[outcome.verdict]}. {outcome.message.rstrip('.')}.",
        next_step=next_step,
    )


_WORDS = {
    SizeVerdict.REFUSED: "refused by Halide",
    SizeVerdict.WRONG_OUTPUT: "wrong",
    SizeVerdict.FAILED: "not run to its end",
}
