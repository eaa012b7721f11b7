"""The loop over a farm of real processes, which are killed and started while it runs."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path

import pytest

import sdk
from halide_autotune.autotune_loop.events import DeviceChanged, Event, Notice, SampleMeasured
from halide_autotune.autotune_loop.history.history import History
from halide_autotune.autotune_loop.run.result import Outcome
from halide_autotune.devices.agent.program import agent_for
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import DeviceError, FarmError, SdkError, UsageError
from halide_autotune.targets.process.content_cache import ContentCache
from tests.end_to_end.conftest import SMALL, TINY_BATCH, Tune
from tests.end_to_end.run_files import check_header, check_run_folder, rows
from tests.end_to_end.test_autotune_devices import check_every_candidate_has_one_end
from tests.farm_with_a_board import farm_with_a_board
from tests.generator_projects import cpp_project
from tests.loopback_farm import loopback_farm
from tests.loopback_lab import LoopbackLab
from tests.remote_board import SshBoard, ssh_board

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("sshd", path="/usr/sbin:/usr/bin"), reason="sshd is not installed"),
]


def lease_of(board: SshBoard) -> str:
    assert board.place.lease_folder is not None
    return (Path(board.place.lease_folder) / "slot-0").read_text()


def test_a_worker_is_killed_and_another_joins(
    tune: Tune, settings: Settings, cache: ContentCache, examples: Path, tmp_path: Path
) -> None:
    agent_for("x86_64", cache)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with (
        ssh_board(tmp_path / "one" / "board", "one") as one,
        ssh_board(tmp_path / "two" / "board", "two") as two,
        loopback_farm(tmp_path / "farm", settings) as farm,
    ):
        labs = {board.name: LoopbackLab(tmp_path / board.name, [board], settings) for board in (one, two)}
        for lab in labs.values():
            # Their times say nothing on a machine that others use, too: nobody is to wait until it is quiet.
            lab.inventory.write_text(lab.inventory.read_text() + "emulated = true\n")

        def start(name: str, build_slots: int) -> None:
            farm.start_worker(name, labs[name].settings, labs[name].inventory, build_slots)

        start("one", 1)
        events: list[Event] = []

        left_by_the_dead = ""

        def listen(event: Event) -> None:
            nonlocal left_by_the_dead
            events.append(event)
            if not isinstance(event, SampleMeasured):
                return
            timed_by = [seen.device for seen in events if isinstance(seen, SampleMeasured)]
            if timed_by == ["one", "one"]:
                # It has the next schedules already: they are lost with it, and done again by who comes.
                farm.workers["one"].kill()
                left_by_the_dead = lease_of(one)
                start("two", 1)
            elif timed_by.count("two") == 1 and event.device == "two":
                start("one", 1)  # not before: it could do all that is left of the round
            elif timed_by.count("one") == 2:
                # The run is not to be over before it is back: every event waits for it, between looks at who has come.
                until_s = time.monotonic() + 5.0
                while lease_of(one) == left_by_the_dead and time.monotonic() < until_s:
                    time.sleep(0.1)
                time.sleep(1.0)

        result = tune(
            str(examples / "separable_filter.py"),
            target="x86-64",
            parameters=SMALL,
            run_folder=tmp_path / "run",
            scheduler=farm.url,
            farm_certificates=farm.user_folder,
            settings=settings,
            rounds=3,
            no_history=False,
            listen=listen,
        )
        kept = History(farm.history).schedules()
        assert {(each.pipeline, each.device) for each in kept} == {("separable_filter", "one")}, "it began there"
        assert len(kept) == result.totals.samples_timed, "the runs of all users start from them"
        assert farm.workers["one"].end() == 0
        assert farm.workers["two"].end() == 0
        for board in (one, two):
            assert board.place.lease_folder is not None
            assert not [slot for slot in Path(board.place.lease_folder).glob("slot-*") if slot.read_text()]
    assert result.outcome is Outcome.FINISHED
    assert result.totals.samples_timed + sum(result.totals.failures.values()) > TINY_BATCH["batch_size"]
    check_every_candidate_has_one_end(result)
    assert {use.name for use in result.devices} == {"one", "two"}
    lost = rows(result.run_folder, "SELECT message FROM incidents WHERE device = 'one'")
    assert any("serves one is gone" in message for (message,) in lost)
    assert not rows(result.run_folder, "SELECT * FROM incidents WHERE trouble = 'leased by someone else'")
    assert ("one", "in service") in [(e.device, e.state) for e in events if isinstance(e, DeviceChanged)]
    check_run_folder(result, "separable_filter", "emulated")
    assert result.best.header is not None
    check_header(result.best.header, "separable_filter")


def test_a_scheduler_is_killed_and_started_again(
    tune: Tune, settings: Settings, cache: ContentCache, examples: Path, tmp_path: Path
) -> None:
    with farm_with_a_board(tmp_path, settings, cache, "lab") as farm:
        events: list[Event] = []
        starts = threading.Thread(target=farm.start_scheduler)

        def listen(event: Event) -> None:
            events.append(event)
            if isinstance(event, SampleMeasured) and sum(isinstance(seen, SampleMeasured) for seen in events) == 2:
                farm.scheduler.kill()
            elif isinstance(event, Notice) and "does not answer" in event.text:
                starts.start()

        result = tune(
            str(examples / "separable_filter.py"),
            target="x86-64",
            parameters=SMALL,
            run_folder=tmp_path / "run",
            scheduler=farm.url,
            farm_certificates=farm.user_folder,
            settings=settings,
            rounds=3,
            listen=listen,
        )
        starts.join()
        farm.workers["lab"].wait_for("The connection to the scheduler was lost.")
        farm.workers["lab"].wait_for("is ready")
    assert result.outcome is Outcome.FINISHED
    check_every_candidate_has_one_end(result)
    assert any("answers again" in event.text for event in events if isinstance(event, Notice))
    states = [event.state for event in events if isinstance(event, DeviceChanged)]
    assert (states[0], states[-1]) == ("out of service", "in service")
    check_run_folder(result, "separable_filter", "emulated")


def test_a_generator_of_several_files_is_tuned(
    tune: Tune, settings: Settings, cache: ContentCache, tmp_path: Path
) -> None:
    reference = cpp_project(tmp_path / "home")
    generator = sdk.GeneratorSpec(f"{reference.file}:filter", build=reference.build)
    with farm_with_a_board(tmp_path, settings, cache, "lab") as farm:
        asked = {"scheduler": farm.url, "farm_certificates": farm.user_folder, "settings": settings}
        result = tune([generator], target="x86-64", run_folder=tmp_path / "run", rounds=2, **asked)
        assert result.outcome is Outcome.FINISHED
        check_run_folder(result, "filter", "emulated")
        assert f'data_files = ["{tmp_path}/home/data/gain.txt"]' in (tmp_path / "run" / "run.toml").read_text()
        (tmp_path / "home" / "data" / "gain.txt").write_text("4\n")
        with pytest.raises(SdkError, match="generator filter: .* or a file that it is made from, has changed"):
            tune("", run_folder=tmp_path / "run", resume=True, rounds=3, settings=settings)


def test_what_a_farm_has_not(tune: Tune, settings: Settings, examples: Path, tmp_path: Path) -> None:
    def ask(**asked: object) -> None:
        tune(
            str(examples / "separable_filter.py"),
            farm_certificates=farm.user_folder,
            settings=settings,
            run_folder=tmp_path / "run",
            **{"scheduler": farm.url, **asked},
        )

    with loopback_farm(tmp_path / "farm", settings) as farm:
        with pytest.raises(DeviceError, match=r"has no device of x86-64; it has: none at all"):
            ask(target="x86-64")
        with pytest.raises(UsageError, match="There is no device 'pi5' in the farm"):
            ask(device="pi5")
        with pytest.raises(UsageError, match="not the farm's"):
            ask(device="local")
        farm.scheduler.kill()
        with pytest.raises(FarmError, match="No scheduler listens"):
            ask(target="x86-64")
    assert not (tmp_path / "run").exists()
