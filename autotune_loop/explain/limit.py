"""What limits a schedule now, by the shares of what its device can do: a roofline (Williams et al. 2009), and more."""

from __future__ import annotations

from halide_autotune.autotune_loop.explain.explained import ExplainedFunc, Explanation
from halide_autotune.autotune_loop.explain.words import bytes_words, lanes_words, tasks_words

# From these shares of what the device can do on, a limit is called one.
_BANDWIDTH, _ARITHMETIC, _IDLE = 0.6, 0.5, 0.25
_AGAIN = 1.5
# Of a call: what a Func needs to be worth a word.
_LARGE_SHARE = 0.2


def what_limits(explanation: Explanation) -> str:
    """A sentence on what limits the schedule that is explained, and one on its slowest Func.

    Without times it only says what is computed again or outside vectors.
    """
    return " ".join(filter(None, (_of_the_device(explanation), _of_the_slowest(explanation))))


def _of_the_device(explanation: Explanation) -> str:
    one, limits, device = explanation.explained, explanation.limits, explanation.device
    busy = one.busy_cores
    if busy is not None and busy < (1 - _IDLE) * explanation.cores:
        return f"Cores wait: {busy:.1f} of {explanation.cores} compute on average.{_who_waits(explanation)}"
    if limits is None or not one.call_s:
        return ""
    shares = []
    traffic_bytes = one.least_traffic_bytes(explanation.cache_bytes)
    if traffic_bytes is not None:
        rate = traffic_bytes / one.call_s
        shares.append(f"{100 * rate / limits.bytes_per_s:.0f} % of the bandwidth of its memory")
        if rate >= _BANDWIDTH * limits.bytes_per_s:
            return (
                f"Memory: at least {bytes_words(rate)} a second go between memory and the caches,"
                f" and {device} was seen to do {bytes_words(limits.bytes_per_s)}."
            )
    if one.operations is not None:
        rate = one.operations / one.call_s
        shares.append(f"{100 * rate / limits.operations_per_s:.0f} % of its arithmetic")
        if rate >= _ARITHMETIC * limits.operations_per_s:
            return (
                f"Arithmetic: {rate / 1e9:.3g} billion operations a second,"
                f" and {device} was seen to do {limits.operations_per_s / 1e9:.3g} billion of 32-bit floats."
            )
    return f"Neither memory nor arithmetic: of what {device} can do it uses {' and '.join(shares)}." if shares else ""


def _who_waits(explanation: Explanation) -> str:
    """The Func in whose time most cores wait; waiting for the last tasks of a loop is a row of the profiler's own."""
    cores, funcs = explanation.cores, explanation.explained.funcs
    most = max(funcs, key=lambda func: (cores - (func.threads or 0.0)) * (func.time_s or 0.0))
    if most.counts is not None:
        return f" Most of the waiting is in {most.name}, which runs {tasks_words(most.counts)}."
    parallel = [func for func in funcs if func.counts is not None and func.counts.parallel_loops]
    told = [f"{func.name} runs {tasks_words(func.counts)}" for func in parallel if func.counts is not None]
    return f" Most of the waiting is for parallel tasks to finish: {', '.join(told)}." if told else ""


def _of_the_slowest(explanation: Explanation) -> str:
    one = explanation.explained
    computed = [func for func in one.funcs if func.counts is not None]
    if not computed:
        return ""
    slowest, facts = computed[0], ", ".join(_facts(computed[0]))
    share = f"takes {100 * (slowest.time_s or 0) / one.call_s:.0f} % of the time" if one.call_s else "loads most"
    again = [func for func in computed[1:] if _is_worth_a_word(func, one.call_s)]
    others = "".join(f" Each point of {func.name} is computed {func.times_computed:.2g} times." for func in again)
    return f"{slowest.name} {share}: {facts}.{others}"


def _is_worth_a_word(func: ExplainedFunc, call_s: float | None) -> bool:
    """Whether what it computes again matters."""
    return (func.times_computed or 0) >= _AGAIN and (not call_s or (func.time_s or 0.0) >= _LARGE_SHARE * call_s)


def _facts(func: ExplainedFunc) -> list[str]:
    facts = []
    counts = func.counts
    if func.times_computed and func.times_computed >= _AGAIN:
        facts.append(f"each point is computed {func.times_computed:.2g} times")
    if counts is not None:
        facts.append(f"it stores {lanes_words(counts.stored)}")
        if counts.loaded.count:
            facts.append(f"loads {lanes_words(counts.loaded)}")
        if func.operations:
            facts.append(f"loads {counts.loaded.bytes / func.operations:.2g} bytes for each operation")
    return facts
