"""What a run knows of its pipelines from earlier runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.events import Event, Notice
from halide_autotune.autotune_loop.history.history import History
from halide_autotune.autotune_loop.history.known_schedule import place_of
from halide_autotune.autotune_loop.search.known.known_schedules import KnownSchedules, known_pipelines
from halide_autotune.autotune_loop.specification.options import RunOptions
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.targets.errors import RunFolderError
from tests.drafted_pipelines import recorded
from tests.known_schedules import known
from tests.run_specs import make_record, make_spec, make_task

SHAPE = recorded("corner_detector").shape


class Asked:
    """Runs in folders below one, which ask the same history."""

    def __init__(self, folder: Path, opened: ExitStack) -> None:
        self.folder, self.history = folder, History(folder / "history.sqlite3")
        self._opened = opened
        self.heard: list[Event] = []

    def run(
        self, name: str, *, resume: bool = False, without: bool = False, threads: int = 4, **options: object
    ) -> KnownSchedules:
        spec = replace(make_spec(make_task("harris"), options=RunOptions.of(**options)), parallelism=threads)
        store = RunStore(self.folder / name, make_record(spec), resume=resume)
        self._opened.callback(store.close)
        return KnownSchedules(store, () if without else (self.history,), self.heard.append)

    def fill(self, run: str, count: int = 9) -> None:
        """Let the history have schedules of the pipeline as a run has timed it, at its place."""
        pipeline = known_pipelines(self.folder / run)[0]
        spec = make_spec(make_task("harris"))
        target, device, clock = place_of(spec.profile.halide_target, make_record(spec).made_with.devices, "wall")
        place = {"halide_target": target, "device": device, "clock": clock}
        self.history.add(known(float(ms), **asdict(pipeline.identity), **place) for ms in range(1, count + 1))


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    with ExitStack() as opened:
        made = Asked(tmp_path, opened)
        made.run("first").of(0, SHAPE)
        made.fill("first")
        yield made


def test_the_best_are_told_and_kept(asked: Asked) -> None:
    schedules = asked.run("second")
    assert [one.time_ms for one in schedules.of(0, SHAPE)] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    assert schedules.of(1, recorded("separable_filter").shape) == ()
    kept = known_pipelines(asked.folder / "second")
    assert kept[0].conditions == "1536x1024, 4 threads" and kept[0].schedules == schedules.of(0, SHAPE)
    assert kept[1].schedules == () and asked.heard == []


def test_times_of_other_threads_and_sizes_are_kept_apart(asked: Asked) -> None:
    """They are tried all the same, after those that were timed alike."""
    for name, options in (("threads", {"threads": 1}), ("sizes", {"also_sizes": ["input=64x64"]})):
        assert len(asked.run(name, **options).of(0, SHAPE)) == 8
    kept = [known_pipelines(asked.folder / name)[0] for name in ("first", "threads", "sizes")]
    assert len({one.identity.as_timed for one in kept}) == 3 and len({one.identity.at_any_size for one in kept}) == 1
    assert [one.conditions for one in kept[1:]] == ["1536x1024, 1 thread", "1536x1024 and 1 more, 4 threads"]


def test_a_resumed_run_has_what_it_had(asked: Asked) -> None:
    before = asked.run("second").of(0, SHAPE)
    asked.history.prune(keep=0, pipeline="harris")
    asked._opened.close()
    assert asked.run("second", resume=True).of(0, SHAPE) == before
    assert asked.run("third", without=True).of(0, SHAPE) == ()


def test_without_a_history_the_pipeline_is_still_kept(asked: Asked) -> None:
    """Its schedules can be added later: sdk history add."""
    assert asked.run("second", without=True).of(0, SHAPE) == ()
    assert known_pipelines(asked.folder / "second")[0].identity == known_pipelines(asked.folder / "first")[0].identity


def test_a_run_goes_on_without_a_damaged_history(asked: Asked) -> None:
    asked.history.file.write_bytes(b"damaged" * 100)
    assert asked.run("second").of(0, SHAPE) == ()
    (notice,) = asked.heard
    assert isinstance(notice, Notice) and notice.warning and "This run goes on without it." in notice.text


@pytest.mark.parametrize(
    "text", ["", "[]", '{"version": 2}', '{"version": 1, "pipelines": [{"task_index": "x", "identity": 3}]}']
)
def test_a_damaged_file_of_a_run_is_told_and_ends_no_run(asked: Asked, text: str) -> None:
    asked.run("second").of(0, SHAPE)
    asked._opened.close()
    (asked.folder / "second" / "history.json").write_text(text)
    with pytest.raises(RunFolderError, match=r"history\.json"):
        known_pipelines(asked.folder / "second")
    assert len(asked.run("second", resume=True).of(0, SHAPE)) == 8
    assert any(isinstance(event, Notice) and "goes on without it" in event.text for event in asked.heard)


def test_several_devices_are_one_place_in_any_order() -> None:
    assert place_of("t", ["b", "a"], "wall") == place_of("t", ["a", "b"], "wall") == ("t", "a, b", "wall")
    many = [f"board-{number}" for number in range(99)]
    (_, device, _) = place_of("t", many, "wall")
    assert device.startswith("99 devices (") and device == place_of("t", reversed(many), "wall")[1]
