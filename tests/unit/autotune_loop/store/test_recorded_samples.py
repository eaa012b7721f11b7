"""Samples of recorded runs: what may be trained on together."""

from __future__ import annotations

from pathlib import Path

import pytest

from halide_autotune.autotune_loop.store.recorded_samples import load_recorded_samples, recorded_network
from halide_autotune.autotune_loop.store.sample_file import Sample, write_sample
from halide_autotune.targets.errors import RunFolderError
from halide_autotune.weights.network import Network
from tests.run_specs import make_record, make_spec
from tests.unit.autotune_loop.store.test_featurization import random_featurization

TOLD = {"profile": "arm64", "device": "qemu", "clock": "emulated", "parallelism": "4"}


def make_run(folder: Path, count: int = 2, **told: str) -> Path:
    (folder / "samples" / "batch_0_0").mkdir(parents=True)
    if told:
        told = {**TOLD, **told}
        spec = make_spec(profile=told["profile"], parallelism=int(told["parallelism"]))
        make_record(spec, devices=(told["device"],), clock=told["clock"]).write(folder)
    for index in range(count):
        (folder / f"samples/batch_0_0/{index}").mkdir()
        sample = Sample(random_featurization(seed=index), 1.0 + index, 7, index)
        write_sample(sample, folder / f"samples/batch_0_0/{index}/blur.sample")
    return folder


def test_runs_of_one_kind_are_read_together(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / "a", profile="arm64"), make_run(tmp_path / "b", 3, profile="arm64")]
    recorded = load_recorded_samples(runs, "arm64")
    assert [sample.runtime_ms for sample in recorded.samples] == [1, 2, 1, 2, 3]
    assert (recorded.unreadable, recorded.parallelism, recorded.clock) == ((), 4, "emulated")


def test_a_folder_of_bare_samples_says_nothing_of_its_device(tmp_path: Path) -> None:
    recorded = load_recorded_samples([make_run(tmp_path / "a")], None)
    assert len(recorded.samples) == 2 and recorded.parallelism is None and recorded.clock is None
    both = load_recorded_samples([tmp_path / "a", make_run(tmp_path / "b", profile="arm64")], None)
    assert len(both.samples) == 4 and both.parallelism == 4


@pytest.mark.parametrize(
    ("key", "value"), [("profile", "riscv64-rvv"), ("device", "board"), ("clock", "wall"), ("parallelism", "2")]
)
def test_what_differs_is_never_mixed(tmp_path: Path, key: str, value: str) -> None:
    runs = [make_run(tmp_path / "a", profile="arm64"), make_run(tmp_path / "b", 2, **{key: value})]
    with pytest.raises(RunFolderError, match=f"with {key} {value}, .*/a with {TOLD[key]}"):
        load_recorded_samples(runs, None)


def test_a_part_of_a_run_and_a_folder_of_runs_are_told_apart_by_the_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [make_run(tmp_path / "a", profile="arm64"), make_run(tmp_path / "b", clock="wall", profile="arm64")]
    with pytest.raises(RunFolderError, match="/b was timed with clock wall, .*/a with emulated"):
        load_recorded_samples([run / "samples" for run in parts], None)
    with pytest.raises(RunFolderError, match="/b was timed with clock wall, .*/a with emulated"):
        load_recorded_samples([tmp_path], None)
    monkeypatch.chdir(tmp_path / "a" / "samples")
    recorded = load_recorded_samples([Path("batch_0_0")], "arm64")
    assert (recorded.parallelism, recorded.clock, len(recorded.samples)) == (4, "emulated", 2)


def test_a_run_for_another_profile_is_named(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a", profile="arm64")
    for folder in (run, run / "samples", tmp_path):
        with pytest.raises(RunFolderError, match="/a is a run for profile arm64, not host"):
            load_recorded_samples([folder], "host")


def test_a_run_for_another_network_is_one_message(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a", profile="cuda-sm80")
    assert recorded_network([make_run(tmp_path / "bare"), run]) == Network.ANDERSON2021
    assert recorded_network([run / "samples"]) == Network.ANDERSON2021
    with pytest.raises(RunFolderError, match=r"/a are for .* Anderson2021, but the weights .* Adams2019"):
        load_recorded_samples([run], None, Network.ADAMS2019)


def test_a_sample_that_cannot_be_read_is_told_and_left_out(tmp_path: Path) -> None:
    make_run(tmp_path / "a", profile="arm64")
    broken = tmp_path / "a" / "samples" / "batch_0_0" / "1" / "blur.sample"
    broken.write_bytes(broken.read_bytes()[:-5])
    recorded = load_recorded_samples([tmp_path / "a"], None)
    assert len(recorded.samples) == 1
    assert len(recorded.unreadable) == 1 and str(broken) in recorded.unreadable[0]


@pytest.mark.parametrize("make", ["nothing", "file", "empty folder", "run without samples"])
def test_where_there_are_no_samples_that_is_said(tmp_path: Path, make: str) -> None:
    path = tmp_path / "runs"
    if make == "file":
        path.touch()
    elif make == "empty folder":
        path.mkdir()
    elif make == "run without samples":
        make_run(path, 0, profile="arm64")
    with pytest.raises(RunFolderError, match=r"runs has no \.sample files"):
        load_recorded_samples([path], None)


@pytest.mark.parametrize("parallelism", ["'many'", "''", "-1", "0", "1.5"])
def test_a_record_with_a_wrong_number_is_one_message(tmp_path: Path, parallelism: str) -> None:
    run = make_run(tmp_path / "a", profile="arm64")
    text = (run / "run.toml").read_text()
    assert "\nparallelism = 4\n" in text
    (run / "run.toml").write_text(text.replace("\nparallelism = 4\n", f"\nparallelism = {parallelism}\n", 1))
    with pytest.raises(RunFolderError, match=r"'spec\.parallelism' must be an integer of at least 1"):
        load_recorded_samples([run], None)
