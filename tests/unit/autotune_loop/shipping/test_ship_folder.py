"""The folder that is shipped, and its manifest."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from halide_autotune.autotune_loop.shipping.files.func_table import FuncRow
from halide_autotune.autotune_loop.shipping.ship_folder import dispatch_target, open_ship_folder, write_ship_folder
from halide_autotune.autotune_loop.shipping.ship_manifest import (
    FILE_NAME,
    ShipManifest,
    ShippedParameters,
    ShippedSchedule,
    read_manifest,
)
from halide_autotune.autotune_loop.shipping.sizes.request import SizeOutcome, SizeVerdict
from halide_autotune.targets.errors import RunFolderError, UsageError

ARM = ShippedSchedule(
    name="blur",
    function_name="blur_arm64",
    dispatch_target="arm-64-linux",
    header="blur.arm64.schedule.h",
    python_module="blur_arm64_schedule.py",
    provenance={
        "generator": "blur",
        "target_profile": "arm64",
        "tuned_ms": 1.5,
        "samples": 3,
        "confirmed": True,
        "default_ms": None,
    },
    parameters={"radius": "3"},
    funcs=(FuncRow("blur_x", 1, 2), FuncRow("blur_y", 2**64 - 1, 0)),
)
HOST = replace(
    ARM,
    function_name="blur_host",
    provenance={"target_profile": "host"},
    dispatch_target="x86-64-linux-avx2",
    header="blur.host.schedule.h",
    python_module="blur_host_schedule.py",
)


def write(folder: Path, *schedules: ShippedSchedule, text: str = "made\n") -> ShipManifest:
    texts = {name: text for schedule in schedules for name in (schedule.header, schedule.python_module)}
    open_ship_folder(folder)
    return write_ship_folder(folder, schedules, texts)


def files(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_targets_are_added_and_replaced(tmp_path: Path) -> None:
    both, one_by_one = tmp_path / "both", tmp_path / "one"
    write(both, HOST, ARM)
    write(one_by_one, ARM, text="older\n")
    write(one_by_one, HOST)
    assert write(one_by_one, ARM) == read_manifest(one_by_one) == read_manifest(both)
    assert files(one_by_one) == files(both), "equal input gives equal files"
    dispatch = (both / "blur.schedule.h").read_text()
    assert '{"arm-64-linux", "x86-64-linux-avx2"}' in dispatch
    assert "{apply_schedule_blur_arm64, apply_schedule_blur_host}" in dispatch
    assert "from . import blur_arm64_schedule, blur_host_schedule" in (both / "blur_schedule.py").read_text()


def test_files_that_are_no_longer_shipped_go(tmp_path: Path) -> None:
    write(tmp_path, HOST, ARM)
    write(tmp_path, replace(ARM, header="blur.renamed.schedule.h"))
    assert not (tmp_path / "blur.arm64.schedule.h").exists()
    assert (tmp_path / "blur.renamed.schedule.h").exists() and (tmp_path / "blur.host.schedule.h").exists()


def test_schedules_of_single_sizes_go_with_the_run_they_came_from(tmp_path: Path) -> None:
    small = replace(
        ARM, function_name="blur_arm64_at_64x48", header="blur.arm64.at_64x48.schedule.h", python_module="small.py",
        for_size="64x48",
    )  # fmt: skip
    write(tmp_path, HOST, ARM, small)
    assert read_manifest(tmp_path).of_target(ARM) == (ARM, small)
    dispatch = (tmp_path / "blur.schedule.h").read_text()
    assert 'if (chosen == 0 && size == "64x48") schedule = apply_schedule_blur_arm64_at_64x48;' in dispatch
    assert '{"64x48": small.apply_schedule}' in (tmp_path / "blur_schedule.py").read_text()
    write(tmp_path, HOST)
    assert read_manifest(tmp_path).schedules == (ARM, small, HOST), "of another target"
    write(tmp_path, ARM)
    assert read_manifest(tmp_path).schedules == (ARM, HOST)
    assert not (tmp_path / small.header).exists()


def test_what_an_older_run_of_a_target_has_shipped_goes(tmp_path: Path) -> None:
    """Of a schedule and its parameters, of a schedule alone, and of parameters alone."""
    values, facts = {"vector": "16"}, {"generator": "blur"}
    texts = {ARM.header: "made\n", ARM.python_module: "made\n"}
    of_arm = ShippedParameters("blur", "arm64", ("blur.arm64.parameters.toml",), facts, {}, values)
    of_host = ShippedParameters("blur", "host", ("blur.host.parameters.toml",), facts, {}, values)
    both = {each.files[0]: "made\n" for each in (of_arm, of_host)}
    write_ship_folder(tmp_path, [ARM], {**texts, **both}, [of_arm, of_host])
    assert read_manifest(tmp_path).parameter_sets == (of_arm, of_host)

    found = write(tmp_path, ARM)
    assert (found.schedules, found.parameter_sets) == ((ARM,), (of_host,))
    assert {*files(tmp_path)} == {*found.files, FILE_NAME} >= {ARM.header, *of_host.files}
    assert not {*files(tmp_path)} & {*of_arm.files}

    found = write_ship_folder(tmp_path, [], {of_arm.files[0]: "made\n"}, [of_arm])
    assert (found.schedules, found.parameter_sets) == ((), (of_arm, of_host))
    assert {*files(tmp_path)} == {*of_arm.files, *of_host.files, FILE_NAME}


def test_nothing_foreign_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RunFolderError, match=r"has files that were not shipped, such as notes\.txt"):
        write(tmp_path, ARM)
    shipped = tmp_path / "shipped"
    write(shipped, ARM)
    (shipped / HOST.header).write_text("by hand")
    with pytest.raises(RunFolderError, match=r"host\.schedule\.h was not shipped and would be overwritten"):
        write(shipped, HOST)
    (shipped / ARM.header).write_text("by hand")
    with pytest.raises(RunFolderError, match=r"arm64\.schedule\.h was changed after it was shipped"):
        write(shipped, ARM)
    assert (shipped / ARM.header).read_text() == (shipped / HOST.header).read_text() == "by hand"
    with pytest.raises(RunFolderError, match="is not a folder"):
        write(shipped / ARM.header, ARM)


def test_two_schedules_cannot_be_one_file(tmp_path: Path) -> None:
    # A generator blur for x86-64, and one that is called blur_host.
    other = replace(HOST, name="blur_host", function_name="other", header=HOST.header + "h", python_module="a.py")
    with pytest.raises(
        UsageError, match=r"the schedule blur_host for host and .* of blur_host would both be blur_host_schedule\.py"
    ):
        write(tmp_path / "new", HOST, other)
    # Of two profiles, "host" and "host_": one name in C++.
    write(tmp_path, HOST)
    twin = replace(HOST, header="blur.host_.schedule.h", provenance={"target_profile": "host_"})
    with pytest.raises(UsageError, match="for host and the schedule blur_host for host_ would both be"):
        write(tmp_path, twin)


def test_a_folder_is_read_as_it_was_or_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the first file's move and the manifest's another process opens the folder, and waits."""
    opened: list[Future[ShipManifest]] = []
    replace_file = Path.replace

    def move(source: Path, target: Path) -> Path:
        moved = replace_file(source, target)
        if source.parent.name == ".written" and not opened:
            opened.append(pool.submit(open_ship_folder, tmp_path))
            with pytest.raises(TimeoutError):
                opened[0].result(timeout=0.05)
        return moved

    monkeypatch.setattr(Path, "replace", move)
    with ThreadPoolExecutor(1) as pool:
        after = write_ship_folder(tmp_path, [ARM], {ARM.header: "made\n", ARM.python_module: "made\n"})
        assert opened[0].result(timeout=60) == after


def test_processes_that_ship_at_once_lose_nothing(tmp_path: Path) -> None:
    schedules = [
        replace(ARM, name=f"f{n}", function_name=f"f{n}_arm64", header=f"f{n}.h", python_module=f"f{n}.py")
        for n in range(8)
    ]
    with ThreadPoolExecutor(len(schedules)) as pool:
        list(pool.map(lambda schedule: write(tmp_path, schedule), schedules))
    assert len(read_manifest(tmp_path).schedules) == len(schedules)
    assert {*files(tmp_path)} == {*read_manifest(tmp_path).files, FILE_NAME}


class Killed(BaseException):
    """Nothing catches it, as nothing catches a kill -9."""


@pytest.mark.parametrize("moves", range(6))
def test_what_a_killed_process_left_is_done_by_the_next(
    moves: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, whole = tmp_path / "killed", tmp_path / "whole"
    for each in (folder, whole):
        write(each, HOST, ARM)
    renamed = replace(ARM, header="blur.renamed.schedule.h")
    after = write(whole, renamed)
    left = moves

    def move(source: Path, target: Path) -> Path:
        nonlocal left
        if source.parent.name == ".written":
            if left == 0:
                raise Killed
            left -= 1
        os.replace(source, target)
        return target

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", move)
        # Five files: header, module, two that choose, and the manifest.
        with pytest.raises(Killed) if moves < 5 else contextlib.nullcontext():
            write(folder, renamed)
    assert open_ship_folder(folder) == after
    assert files(folder) == files(whole)


def test_what_was_changed_after_a_kill_is_kept(tmp_path: Path) -> None:
    write(tmp_path, ARM)
    written = tmp_path / ".written"
    shutil.copytree(tmp_path, written)
    (tmp_path / ARM.header).write_text("by hand")
    with pytest.raises(RunFolderError, match=r"arm64\.schedule\.h was changed after it was shipped"):
        write(tmp_path, ARM)
    (tmp_path / ARM.header).unlink()
    write(tmp_path, ARM)
    assert (tmp_path / ARM.header).read_text() == "made\n" and not written.exists()


def test_a_full_disk_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path, ARM)
    before = files(tmp_path)
    (tmp_path / ".written").mkdir()
    (tmp_path / ".written" / "left by a killed process").write_text("")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(RunFolderError, match="cannot be written: File too large"):
            write(tmp_path, ARM, HOST, text="long\n" * 50_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert files(tmp_path) == before


def test_only_hardware_decides_which_schedule_fits() -> None:
    assert dispatch_target("x86-64-linux-avx2-no_asserts-tune_znver4-cuda-profile") == "x86-64-linux-avx2-cuda"


texts = st.text(max_size=20)
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,10}", fullmatch=True)
hashes = st.integers(0, 2**64 - 1)
schedules = st.builds(
    ShippedSchedule,
    name=names,
    function_name=names,
    dispatch_target=st.just("arm-64-linux"),
    header=names,
    python_module=names,
    provenance=st.dictionaries(texts, st.none() | st.booleans() | st.integers() | texts, max_size=4),
    parameters=st.dictionaries(texts, texts, max_size=3),
    funcs=st.lists(st.builds(FuncRow, texts, hashes, hashes), max_size=4).map(tuple),
    sizes=st.none()
    | st.lists(st.builds(SizeOutcome, texts, st.sampled_from(SizeVerdict), texts), max_size=3).map(tuple),
    guard=names | st.just(""),
)
sha256s = st.text("0123456789abcdef", min_size=64, max_size=64)
manifests = st.builds(ShipManifest, st.lists(schedules, max_size=3).map(tuple), st.dictionaries(names, sha256s))


@given(manifest=manifests)
def test_a_manifest_survives_its_file(manifest: ShipManifest, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("manifest")
    (folder / FILE_NAME).write_text(manifest.to_json())
    assert read_manifest(folder) == manifest


@given(data=st.data())
def test_a_damaged_manifest_is_one_message(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Any value is put in place of any other."""
    fields = json.loads(ShipManifest((ARM,), {ARM.header: "0" * 64}).to_json())
    place: Any = fields
    while isinstance(place, dict | list) and place:
        parent, key = place, data.draw(st.sampled_from(list(place) if isinstance(place, dict) else range(len(place))))
        place = parent[key]
        if data.draw(st.booleans()):
            break
    parent[key] = data.draw(st.none() | st.integers() | st.text(max_size=3) | st.just(["../x"]) | st.just({"a": []}))
    folder = tmp_path_factory.mktemp("manifest")
    (folder / FILE_NAME).write_text(json.dumps(fields))
    try:
        read = read_manifest(folder)
    except RunFolderError as error:
        assert "is damaged" in error.message and "\n" not in error.message
    else:
        assert read.to_dict() == {**fields, "files": dict(sorted(fields["files"].items()))}


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": "halide-sdk-shipped", "version": 9}', "\xff"])
def test_a_file_that_is_no_manifest_is_one_message(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE_NAME).write_text(text, encoding="latin-1")
    with pytest.raises(RunFolderError, match="is damaged"):
        read_manifest(tmp_path)
    with pytest.raises(RunFolderError, match="is not a shipped folder"):
        read_manifest(tmp_path / "nowhere")
