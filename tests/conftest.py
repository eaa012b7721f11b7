"""What tests of several folders share: the installed tools, and one cache of compiled files for the session."""

from __future__ import annotations

import os

# Several sessions share the cores, and threads of BLAS would wait for each other most of the time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# What is printed is compared.
os.environ.pop("FORCE_COLOR", None)
os.environ.pop("NO_COLOR", None)
os.environ.pop("PY_COLORS", None)
os.environ.pop("COLUMNS", None)

import ctypes
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from halide_autotune.sdk.settings import Settings, read_settings
from halide_autotune.targets.halide_install import HalideInstall, find_halide_install
from halide_autotune.targets.process.content_cache import ContentCache
from halide_autotune.targets.toolchain.host_cpp_compiler import HostCppCompiler
from tests.quick_marker import QuickGuard
from tests.tensorflow_fork import shared_tensorflow

PROJECT = Path(__file__).parents[1]
# Of linux/prctl.h and linux/capability.h.
_PR_CAPBSET_DROP, _CAP_SYS_NICE = 24, 23
# Every test has one of these markers.
_LONGEST_FIRST = ("slow", "toolchain", "quick", "hardware")
# By default an example fails that takes 0.2 s, and so does drawing a few of them in a second: on a machine that other
# work holds up now and then, those are no faults.
hypothesis_settings.register_profile("shared machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.load_profile("shared machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--compiled", type=Path, metavar="FOLDER", help="keep what is compiled, for further test sessions")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(QuickGuard())
    _heed_signals()
    _forbid_priority()


@pytest.hookimpl(trylast=True)  # once all have their markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with long tests first: a worker takes whole files in this order, and at the end no other waits for it."""
    places: dict[Path, int] = {}
    for item in items:
        place = next(place for place, name in enumerate(_LONGEST_FIRST) if item.get_closest_marker(name))
        places[item.path] = min(place, places.get(item.path, place))
    items.sort(key=lambda item: places[item.path])


def _heed_signals() -> None:
    """What a shell starts in the background, or `nohup`, ignores signals that tests send, and so do its children."""
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


def _forbid_priority() -> None:
    """What root starts here may not go before others: a kernel that is timed would hold up every other test."""
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() == 0 and libc.prctl(_PR_CAPBSET_DROP, _CAP_SYS_NICE, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "CAP_SYS_NICE cannot be given up")


@pytest.fixture(scope="session")
def examples() -> Path:
    return PROJECT / "examples"


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory, worker_id: str, pytestconfig: pytest.Config) -> Settings:
    """Settings that keep everything below the session's temporary folder; what is compiled is shared by all workers."""
    folder = tmp_path_factory.mktemp("settings")
    base = tmp_path_factory.getbasetemp()
    kept: Path | None = pytestconfig.getoption("--compiled")
    cache_folder = kept or (base if worker_id == "master" else base.parent) / "cache"
    config_folder = folder / "config"
    own = {"SDK_CACHE_DIR": str(cache_folder), "SDK_CONFIG_DIR": str(config_folder)}
    return Settings(cache_folder, config_folder, folder / "profiles", {**read_settings().environment, **own})


@pytest.fixture(scope="session")
def halide() -> HalideInstall:
    return find_halide_install()


@pytest.fixture(scope="session")
def cache(settings: Settings) -> ContentCache:
    return ContentCache(settings.cache_folder)


@pytest.fixture(scope="session")
def cpp_compiler(halide: HalideInstall, cache: ContentCache, settings: Settings) -> HostCppCompiler:
    return HostCppCompiler(halide, cache, settings.environment)


@pytest.fixture(scope="session")
def forked_tensorflow() -> Iterator[None]:
    """Cost models of this process need not import TensorFlow again and again."""
    with shared_tensorflow():
        yield


@pytest.fixture(scope="session")
def tensorflow_ready() -> None:
    """Import TensorFlow with its own warnings kept out of the tests."""
    from halide_autotune.autotune_loop.cost_model.process.model_worker import limit_threads

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        limit_threads(1)
