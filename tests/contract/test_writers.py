"""Every place that writes files, on a full disk and on a read-only one: one message, and nothing half-written."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy
import pytest

import sdk
from halide_autotune.autotune_loop.execute.messages import FilePart, TaskResult
from halide_autotune.autotune_loop.execute.run_files import RunFiles
from halide_autotune.autotune_loop.execute.tasks.task import FileKey
from halide_autotune.autotune_loop.execute.travelling_generators import _packed
from halide_autotune.autotune_loop.farm.certificates.authority import make_certificates
from halide_autotune.autotune_loop.farm.certificates.revocation import revoke_certificates
from halide_autotune.autotune_loop.report.recorded_run import read_recorded_run
from halide_autotune.autotune_loop.report.run_page import PageOptions
from halide_autotune.autotune_loop.store.featurization import Featurization
from halide_autotune.autotune_loop.store.run_database import RunDatabase
from halide_autotune.autotune_loop.store.run_store import RunStore
from halide_autotune.autotune_loop.store.sample_file import Sample, write_sample
from halide_autotune.devices.adb.key import load_adb_key
from halide_autotune.devices.health.health import record_unhealthy
from halide_autotune.devices.inventory.file import add_device
from halide_autotune.devices.lease.token import LeaseToken, keep_token, lasting_token, new_token
from halide_autotune.devices.local.host_transport import HostTransport
from halide_autotune.devices.remote_place import RemotePlace, SshAddress
from halide_autotune.sdk.api.report import write_report
from halide_autotune.sdk.service.farm_worker import _own_folder
from halide_autotune.targets.build.runner_input_file import write_input_file
from halide_autotune.targets.errors import SdkError
from halide_autotune.targets.halide_install import find_halide_install
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.weights.baseline import baseline_weights
from halide_autotune.weights.lineage import Lineage
from halide_autotune.weights.registry import WeightsRegistry
from halide_autotune.weights.weights_file import Weights
from tests.contract.writing_process import HEADER, RECORD, candidate, measurement, symbol
from tests.recorded_run_folder import write_run_folder
from tests.small_file_system import small_file_system
from tests.unit.autotune_loop.shipping.test_ship_folder import ARM
from tests.unit.autotune_loop.shipping.test_ship_folder import write as ship
from tests.unit.devices.inventory.test_file import board

EXAMPLES = Path(__file__).parents[2] / "examples"
PLACE = RemotePlace(SshAddress("board"))
OPEN = ("a_row_of_the_database", "a_batch_of_a_run", "a_header_of_a_run")
WRITERS: dict[str, Callable[[Path], Callable[[], object]]] = {}


def writer(prepare: Callable[[Path], Callable[[], object]]) -> Callable[[Path], Callable[[], object]]:
    """Register what prepares a folder, while there is room, and returns what then writes into it."""
    WRITERS[prepare.__name__] = prepare
    return prepare


@writer
def a_new_run_folder(folder: Path) -> Callable[[], object]:
    return lambda: RunStore(folder / "run", RECORD, resume=False)


@writer
def a_run_record(folder: Path) -> Callable[[], object]:
    return lambda: RECORD.write(folder)


@writer
def a_new_database(folder: Path) -> Callable[[], object]:
    return lambda: RunDatabase(folder / "tuning.db")


@writer
def a_row_of_the_database(folder: Path) -> Callable[[], object]:
    database = RunDatabase(folder / "tuning.db")

    def write() -> None:
        try:
            for index in range(1000):  # it has room of its own for a while
                database.add_candidate(candidate(folder, 0, index))
                database.add_measurement(measurement(symbol(0, index), 1e-3), "sample", 0.1)
        finally:
            database.close()

    return write


@writer
def a_batch_of_a_run(folder: Path) -> Callable[[], object]:
    store = RunStore(folder / "run", RECORD, resume=False)
    return closing(store, lambda: store.start_batch(0, 0, baseline(), "size=1"))


@writer
def a_header_of_a_run(folder: Path) -> Callable[[], object]:
    store = RunStore(folder / "run", RECORD, resume=False)
    return closing(store, lambda: store.keep_header("own", 0, HEADER.format(body="")))


@writer
def a_sample(folder: Path) -> Callable[[], object]:
    stages = Featurization(numpy.ones((3, 39), numpy.float32), numpy.ones((3, 287), numpy.float32))
    return lambda: write_sample(Sample(stages, 1.0, 0, 0), folder / "a.sample")


@writer
def a_report(folder: Path) -> Callable[[], object]:
    write_run_folder(folder / "run", samples=3)
    run = read_recorded_run(folder / "run")
    return lambda: write_report(run, None, PageOptions())


@writer
def a_build(folder: Path) -> Callable[[], object]:
    return lambda: sdk.build(str(EXAMPLES / "separable_filter.py"), folder / "built", target="x86-64")


@writer
def shipped_headers(folder: Path) -> Callable[[], object]:
    return lambda: ship(folder / "shipped", ARM)


@writer
def named_weights(folder: Path) -> Callable[[], object]:
    weights = baseline()
    return lambda: WeightsRegistry(folder, folder / "none").add("arm64", weights, Lineage(profile="arm64"))


@writer
def a_compiled_file(folder: Path) -> Callable[[], object]:
    def build(path: Path) -> None:
        path.symlink_to("/bin/true")  # takes no room: what is short of it is the seal

    return lambda: ContentCache(folder).get_or_build(["key"], ".o", build)


@writer
def a_file_on_a_worker(folder: Path) -> Callable[[], object]:
    key = FileKey("batch", "0" * 64)
    return lambda: RunFiles(folder).receive(FilePart("run", key, 0, 2000, False, b"x" * 1000))


@writer
def a_file_of_a_worker(folder: Path) -> Callable[[], object]:
    result = TaskResult("none", msgspec.Raw(b"null"), 0.0, {"a/b.o": b"content"})
    return lambda: result.unpack(folder)


@writer
def a_generator_for_workers(folder: Path) -> Callable[[], object]:
    return lambda: _packed([Path(__file__)], Path(__file__).parent, folder / "generators" / "a.tar")


@writer
def a_workers_folder(folder: Path) -> Callable[[], object]:
    def use() -> None:
        with _own_folder(folder / "worker") as own:
            lasting_token(own)

    return use


@writer
def a_token_of_a_lease(folder: Path) -> Callable[[], object]:
    return lambda: keep_token(folder / "tokens", PLACE, LeaseToken(new_token(), 1e9))


@writer
def the_health_of_a_device(folder: Path) -> Callable[[], object]:
    return lambda: record_unhealthy(folder / "health", PLACE.address, "It fails.", 1e9)


@writer
def a_device_in_the_inventory(folder: Path) -> Callable[[], object]:
    add_device(folder / "devices.toml", board("old"))
    return lambda: add_device(folder / "devices.toml", board("new"))


@writer
def an_adb_key(folder: Path) -> Callable[[], object]:
    return lambda: load_adb_key(folder / "keys" / "adbkey", "tester@here")


@writer
def certificates(folder: Path) -> Callable[[], object]:
    return lambda: make_certificates(folder / "farm", ["lab"], [])


@writer
def a_renewed_certificate(folder: Path) -> Callable[[], object]:
    make_certificates(folder / "farm", ["lab"], [])
    return lambda: make_certificates(folder / "farm", ["lab"], [], renew=True)


@writer
def revoked_certificates(folder: Path) -> Callable[[], object]:
    make_certificates(folder / "farm", ["lab"], [])
    return lambda: revoke_certificates(folder / "farm", ["lab"])


@writer
def a_file_on_this_machine_as_a_device(folder: Path) -> Callable[[], object]:
    return lambda: HostTransport(folder / "devices", {}, 2**30).push(Path(__file__), "program")


@writer
def an_input_of_a_kernel(folder: Path) -> Callable[[], object]:
    return lambda: write_input_file(numpy.ones((8, 8), numpy.uint8), folder / "input.raw")


def baseline() -> Weights:
    return baseline_weights(find_halide_install().plugin_path("Adams2019"))


def closing(store: RunStore, write: Callable[[], object]) -> Callable[[], object]:
    def run() -> None:
        try:
            write()
        finally:
            store.close()

    return run


def fill(folder: Path) -> str:
    with pytest.raises(OSError, match="No space"), (folder / "filling").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(512))
    return "No space left on device|disk .*is full|disk I/O error"


def make_read_only(folder: Path) -> str:
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
    return "Read-only file system|readonly database|unable to open"


@pytest.mark.parametrize(
    ("name", "spoil"),
    # What has open files, as a run has its database, cannot become read-only.
    [
        pytest.param(name, spoil, marks=pytest.mark.toolchain if name == "a_build" else ())
        for spoil in (fill, make_read_only)
        for name in WRITERS
        if spoil is fill or name not in OPEN
    ],
)
def test_a_writer_says_what_is_wrong_and_leaves_no_half_of_a_file(
    tmp_path: Path, name: str, spoil: Callable[[Path], str]
) -> None:
    with small_file_system(tmp_path / "small", megabytes=2) as folder:
        write = WRITERS[name](folder)
        before = contents(folder)
        reason = spoil(folder)
        with pytest.raises(SdkError, match=reason) as caught:
            write()
        assert str(folder) in str(caught.value), "it names the file, or its folder"
        assert caught.value.next_step or "free some space" in caught.value.message, "and says what to do"
        assert len(str(caught.value).splitlines()) == 1
        after = contents(folder)
        assert {path: after.get(path) for path in before} == before, "what was there is as it was"
        assert sorted(after.keys() - before.keys()) == []


def contents(folder: Path) -> dict[Path, bytes]:
    """The files that have a content, without those of the test and of the database's own bookkeeping."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "filling"]
    return {path: content for path in files if not path.name.startswith("tuning.db") and (content := path.read_bytes())}
