"""What a run starts from and adds to is one thing, whether the user's own file has it or a farm's scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.events import Event, Notice
from halide_autotune.autotune_loop.history.farm_history import FarmHistory
from halide_autotune.autotune_loop.history.history import History, NestLimits
from halide_autotune.autotune_loop.search.known.histories import HistorySource, best_of, nests_of
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import HistoryError
from tests.known_schedules import INLINED, PIPELINE, PLACE, TARGET, known
from tests.loopback_farm import LoopbackFarm, loopback_farm

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]
TEXTS = [INLINED.replace("[]", f"[{' ' * number}]") for number in range(4)]
LIMITS = NestLimits(most_pipelines=5, most_each=10, fewest_each=1)


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory, settings: Settings) -> Iterator[LoopbackFarm]:
    with loopback_farm(tmp_path_factory.mktemp("farm"), settings) as processes:
        yield processes


@pytest.fixture(params=["own", "farm"])
def history(request: pytest.FixtureRequest, tmp_path: Path) -> HistorySource:
    if request.param == "own":
        return History(tmp_path / "history.sqlite3")
    farm: LoopbackFarm = request.getfixturevalue("farm")
    farm.history.unlink(missing_ok=True)
    return FarmHistory(farm.address)


def test_nothing_is_known_at_first(history: HistorySource) -> None:
    assert history.best(PIPELINE, PLACE, 4) == []
    assert history.nests(TARGET, "4 threads", LIMITS) == []


def test_what_was_added_is_known_with_the_fastest_first(history: HistorySource) -> None:
    slow, fast, other = known(2.0, TEXTS[0]), known(1.0, TEXTS[1]), known(0.5, TEXTS[2], device="attic")
    assert history.add([slow, fast, other]) == 3
    assert history.add([slow]) == 0, "it is known"
    assert history.best(PIPELINE, PLACE, 4) == [fast, other, slow], "each place has its turn, this one first"
    assert history.best(PIPELINE, PLACE, 1) == [fast]


def test_loop_nests_come_with_their_times(history: HistorySource) -> None:
    several = [known(float(ms), TEXTS[ms]) for ms in (1, 2)]
    history.add(several, {one.nest_key: f"nest {one.time_ms}".encode() for one in several})
    (group,) = history.nests(TARGET, "4 threads", LIMITS)
    assert sorted(group) == [(b"nest 1.0", 1.0), (b"nest 2.0", 2.0)]
    assert history.nests(TARGET, "8 threads", LIMITS) == []


def test_a_damaged_file_is_one_error(history: HistorySource, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    is_own = isinstance(history, History)
    file = tmp_path / "history.sqlite3" if is_own else request.getfixturevalue("farm").history
    file.write_text("no database")
    for asked in (
        lambda: history.best(PIPELINE, PLACE, 4),
        lambda: history.nests(TARGET, "4 threads", LIMITS),
        lambda: history.add([known(1.0, TEXTS[0])]),
    ):
        with pytest.raises(HistoryError, match="damaged"):
            asked()
    file.unlink()
    assert history.best(PIPELINE, PLACE, 4) == []


def test_a_farm_keeps_what_it_knows_while_its_scheduler_is_away(farm: LoopbackFarm) -> None:
    history = FarmHistory(farm.address)
    farm.history.unlink(missing_ok=True)
    history.add([known(1.0, TEXTS[0])])
    farm.scheduler.kill()
    with pytest.raises(HistoryError, match="The farm's history cannot be asked"):
        history.best(PIPELINE, PLACE, 4)
    farm.start_scheduler("--no-history")
    assert history.best(PIPELINE, PLACE, 4) == [] and history.add([known(2.0, TEXTS[1])]) == 0
    assert history.nests(TARGET, "4 threads", LIMITS) == []
    farm.scheduler.kill()
    farm.start_scheduler()
    assert history.best(PIPELINE, PLACE, 4) == [known(1.0, TEXTS[0])]


class Silent:
    """A history that cannot be asked."""

    def best(self, *asked: object) -> object:
        raise HistoryError("It is away.")

    nests: Callable[..., object] = best


def test_a_run_asks_all_and_does_without_those_that_do_not_answer(tmp_path: Path) -> None:
    first, second = History(tmp_path / "first"), History(tmp_path / "second")
    both, mine, theirs = known(3.0, TEXTS[0]), known(2.0, TEXTS[1]), known(1.0, TEXTS[2])
    nest = {both.nest_key: b"nest"}
    first.add([mine, both], nest)
    second.add([theirs, both], nest)
    heard: list[Event] = []
    histories: list[HistorySource] = [first, Silent(), second]  # type: ignore[list-item]  # one that only fails
    assert best_of(histories, PIPELINE, PLACE, 9, heard.append) == (mine, theirs, both)
    assert best_of(histories, PIPELINE, PLACE, 1, heard.append) == (mine,)
    assert nests_of(histories, TARGET, "4 threads", LIMITS, heard.append) == [[(b"nest", 3.0)]], "both have them"
    told = [event for event in heard if isinstance(event, Notice)]
    assert {event.text for event in told} == {"It is away. This run goes on without it."} and told[0].warning
