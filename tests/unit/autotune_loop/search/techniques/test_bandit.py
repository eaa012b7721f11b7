"""How a batch is divided: by what a technique has brought for its time, and nothing is forgotten for good."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.autotune_loop.search.techniques.bandit import Outcome, divide

NAMES = ("sampling", "sketches", "evolution")


def outcomes(text: str, **costs_s: float) -> list[Outcome]:
    """Batches of one, by initials: a capital is faster than all before, a small letter slower, after '!' one failed."""
    names = {name[1]: name for name in NAMES}
    made: list[Outcome] = []
    best_ms, has_failed = 100.0, False
    for letter in text:
        if letter == "!":
            has_failed = True
            continue
        name = names[letter.lower()]
        best_ms -= 0.1 if letter.isupper() else 0.0
        time_ms = None if has_failed else best_ms if letter.isupper() else 1000.0
        made.append(Outcome(name, time_ms, costs_s.get(name, 1.0), len(made)))
        has_failed = False
    return made


# The second letter: sAmpling, sKetches, eVolution.


@given(
    made=st.lists(
        st.builds(
            Outcome,
            st.sampled_from(NAMES),
            st.none() | st.floats(0.01, 100.0),
            st.floats(0.0, 30.0),
            st.integers(0, 3),
        ),
        max_size=60,
    ),
    count=st.integers(0, 40),
    techniques=st.sampled_from([NAMES, NAMES[:2], NAMES[2:]]),
)
def test_shares_sum_up_to_the_batch(made: list[Outcome], count: int, techniques: tuple[str, ...]) -> None:
    shares = divide(made, techniques, count)
    assert list(shares) == list(techniques) and sum(shares.values()) == count
    assert all(share >= 0 for share in shares.values())
    assert divide(made, techniques, count) == shares


def test_at_first_all_have_the_same() -> None:
    assert divide([], NAMES, 12) == dict.fromkeys(NAMES, 4)


def test_what_brings_successes_gets_most() -> None:
    shares = divide(outcomes("AVKaaaaaVkaVaaVakVak"), NAMES, 16)
    assert shares["evolution"] > 8 > shares["sampling"]
    turned = divide(outcomes("AVKvvvvvAkvAvvAvkAvk"), NAMES, 16)
    assert turned["sampling"] > 8 > turned["evolution"]


def batch(round_index: int, technique: str, *times_ms: float) -> list[Outcome]:
    return [Outcome(technique, time_ms, 1.0, round_index) for time_ms in times_ms]


def test_a_success_is_among_the_fastest_not_only_the_fastest() -> None:
    first = batch(0, "sampling", 10.0, 11.0, 12.0, 13.0, 14.0, *[20.0] * 15)
    fifth, slower = batch(1, "evolution", 13.9, 14.3), batch(1, "evolution", 14.1, 14.2)
    assert divide([*first, *fifth], NAMES, 12)["evolution"] > divide([*first, *slower], NAMES, 12)["evolution"]


def test_the_first_of_a_batch_are_no_successes_for_being_first() -> None:
    slow, fast = batch(0, "sampling", 30.0, 31.0, 32.0), batch(0, "sketches", 10.0, 11.0, 12.0, 13.0, 14.0)
    shares = divide([*slow, *fast], NAMES[:2], 12)
    assert shares["sketches"] > 8 > shares["sampling"]
    assert divide([*fast, *slow], NAMES[:2], 12) == shares


def test_of_few_schedules_only_the_fastest_are_successes() -> None:
    early = [*batch(0, "sampling", 30.0, 31.0), *batch(0, "sketches", 10.0, 29.0, 32.0, 33.0)]
    slowest = [*batch(0, "sampling", 34.0, 35.0), *batch(0, "sketches", 10.0, 29.0, 32.0, 33.0)]
    assert divide(early, NAMES[:2], 12) == divide(slowest, NAMES[:2], 12)


def test_the_newest_weigh_most() -> None:
    early, late = (
        "AAAAA" + "VVVVV" + "avavavavav" + "KKKKK" + "k" * 5,
        "AAAAA" + "avavavavav" + "KKKKK" + "VVVVV" + "k" * 5,
    )
    assert divide(outcomes(late), NAMES, 10)["evolution"] > divide(outcomes(early), NAMES, 10)["evolution"]


def test_what_lies_far_back_is_forgotten() -> None:
    slow = batch(100, "sampling", *[1000.0] * 200)
    assert divide([*outcomes("V" * 20), *slow], NAMES, 12) == divide([*outcomes("K" * 20), *slow], NAMES, 12)
    slow = slow[:180]
    assert divide([*outcomes("V" * 20), *slow], NAMES, 12) != divide([*outcomes("K" * 20), *slow], NAMES, 12)


def test_failures_count_as_none() -> None:
    shares = divide(outcomes("AKVKAKV!v!v!v!v!v!v!vKAKA"), NAMES, 12)
    assert shares["evolution"] < shares["sampling"] and shares["evolution"] < shares["sketches"]


def test_what_costs_more_gets_less_for_the_same_successes() -> None:
    history = "AVK" + "aVAkvK" * 4
    same = divide(outcomes(history), NAMES, 30)
    dear = divide(outcomes(history, evolution=6.0), NAMES, 30)
    assert dear["evolution"] < same["evolution"] / 2
    cheap = divide(outcomes(history, sketches=0.2), NAMES, 30)
    assert cheap["sketches"] > same["sketches"]


def test_only_the_ratio_of_costs_counts() -> None:
    history = "AVK" + "aVAkvK" * 4
    few = divide(outcomes(history, sampling=1.0, evolution=2.0, sketches=3.0), NAMES, 30)
    assert divide(outcomes(history, sampling=10.0, evolution=20.0, sketches=30.0), NAMES, 30) == few


def test_what_costs_nothing_does_not_get_everything() -> None:
    shares = divide(outcomes("AVAVAVAV", sampling=0.0, evolution=0.0), NAMES[::2], 10)
    assert set(shares.values()) == {5}


@pytest.mark.parametrize("unused", NAMES)
def test_one_that_was_never_used_is_tried(unused: str) -> None:
    letters = "".join(name[1] for name in NAMES if name != unused)
    history = letters.upper() + letters * 20
    assert divide(outcomes(history), NAMES, 12)[unused] >= 1


@pytest.mark.parametrize("unused", NAMES)
def test_one_that_was_never_used_is_tried_in_a_small_batch_though_others_bring_much(unused: str) -> None:
    history = "".join(name[1].upper() for name in NAMES if name != unused) * 4
    assert divide(outcomes(history), NAMES, 2)[unused] == 1


def test_one_that_has_long_brought_nothing_is_tried_again_in_time() -> None:
    """Its bonus grows with what the others use."""
    history = outcomes("VKA" + "kVaV" * 3)
    for _ in range(12):
        shares = divide(history, NAMES, 8)
        history += [Outcome(name, 1000.0, 1.0, 100) for name, share in shares.items() for _ in range(share)]
    used = [one.technique for one in history[15:]]
    assert all(used.count(name) >= 5 for name in NAMES)
