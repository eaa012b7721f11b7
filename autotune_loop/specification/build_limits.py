"""How long each step of building a candidate may take, and which of that a time budget implies."""

from __future__ import annotations

from dataclasses import dataclass

from halide_autotune.autotune_loop.specification.options import Limits

# Step → share of its task's part of the budget, and the least that it is given: below that most generators would fail.
_BUDGET_SHARES = {
    "search_s": (0.25, 10.0),
    "full_search_s": (0.1, 2.0),
    "reference_s": (0.5, 10.0),
    "reference_run_s": (0.5, 10.0),
}
# Step → what it is called, and what sets its limit.
_WORDS = {
    "search_s": ("one search", " or set --search-limit"),
    "full_search_s": ("the full beam search", " or set --full-search-limit"),
    "reference_s": ("building the reference", " or set --search-limit"),
    "reference_run_s": ("one run of the reference", ""),
}


@dataclass(frozen=True)
class BuildLimits:
    """The limits of one candidate.

    Attributes:
        search_s: of a random search with code generation.
        full_search_s: of the full beam search.
        reference_s: of building the reference.
        reference_run_s: of running it once.
        memory_bytes: of each process.
        budget_s: of the run; None without one.
        implied: those of the times that the budget implies.
    """

    search_s: float = 60.0
    full_search_s: float = 600.0
    reference_s: float = 120.0
    reference_run_s: float = 600.0
    memory_bytes: int = 8 * 2**30
    budget_s: float | None = None
    implied: tuple[str, ...] = ()

    @classmethod
    def of_run(cls, asked: Limits, tasks: int, memory_bytes: int) -> BuildLimits:
        """What is asked counts; else, with a budget, each step that a run waits for may take a share of it.

        Args:
            tasks: that share the budget.
            memory_bytes: where no limit is asked.
        """
        standard = cls()
        # A generator that needs long for a search needs long for the reference, too.
        by_hand = {
            "search_s": asked.search_limit_s,
            "full_search_s": asked.full_search_limit_s,
            "reference_s": asked.search_limit_s and max(asked.search_limit_s, standard.reference_s),
        }
        limits_s: dict[str, float] = {}
        implied = []
        for step, (share, least_s) in _BUDGET_SHARES.items():
            limits_s[step] = by_hand.get(step) or getattr(standard, step)
            if asked.budget_s is None or by_hand.get(step) is not None:
                continue
            leaves_s = max(least_s, share * asked.budget_s / tasks)
            if leaves_s < limits_s[step]:
                limits_s[step] = leaves_s
                implied.append(step)
        memory_bytes = asked.memory_limit_bytes or memory_bytes
        return cls(**limits_s, memory_bytes=memory_bytes, budget_s=asked.budget_s, implied=tuple(implied))

    def advice(self, step: str) -> str:
        """A sentence for one that took longer than the budget leaves it; empty where the budget does not limit it.

        Args:
            step: the name of its limit, such as 'search_s'.
        """
        if step not in self.implied:
            return ""
        what, option = _WORDS[step]
        leaves = f"The budget of {self.budget_s:g} s leaves {getattr(self, step):g} s for {what}"
        return f" {leaves}; raise --budget{option}."
