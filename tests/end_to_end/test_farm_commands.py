"""`sdk farm` as lab hosts and users run it: real processes on the loopback, with certificates."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from halide_autotune.autotune_loop.farm.certificates.authority import make_certificates
from halide_autotune.sdk.main import main
from halide_autotune.sdk.settings import Settings
from tests.loopback_farm import FarmProcess, LoopbackFarm, loopback_farm, sdk_program

pytestmark = pytest.mark.slow

# Within seconds, on a machine that does other things, too.
_SOON_S = 120.0
# A worker of another Halide: everything of it is real but what it says of itself.
_OTHER_HALIDE = """
import dataclasses, sys
import halide_autotune.autotune_loop.execute.serve_worker as service
own = service.own_versions
service.own_versions = lambda builds: dataclasses.replace(own(builds=builds), halide="20.0.0")
from halide_autotune.sdk.main import main
sys.exit(main(sys.argv[1:]))
"""

# A worker that can connect to its scheduler, which cannot connect to it: it says that it is where nobody listens.
_OUT_OF_REACH = """
import functools, sys
from halide_autotune.autotune_loop.farm import versions
code_sha256, _ = sys.argv.pop(1), sys.argv.pop(1)
versions._code_sha256 = lambda: code_sha256
import halide_autotune.autotune_loop.execute.serve_worker as service
service.PortlessWorker = functools.partial(service.PortlessWorker, contact_address="tls://127.0.0.1:1")
from halide_autotune.sdk.main import main
sys.exit(main(sys.argv[1:]))
"""

_WITHOUT_A_LOOK = """
import sys
from halide_autotune.autotune_loop.execute import serve_worker
serve_worker.check_host_certificate = lambda folder, service: None
from halide_autotune.sdk.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory, settings: Settings) -> Iterator[LoopbackFarm]:
    with loopback_farm(tmp_path_factory.mktemp("farm"), settings) as processes:
        processes.start_worker("lab1", settings, build_slots=2)
        yield processes


@pytest.fixture
def sdk(settings: Settings, tmp_path: Path) -> Any:
    """Run one command of a user who has no settings yet; gives exit code, standard output and standard error."""
    environment = {
        **{name: text for name, text in os.environ.items() if name != "SDK_SCHEDULER"},
        "SDK_CACHE_DIR": str(settings.cache_folder),
        "SDK_CONFIG_DIR": str(tmp_path / "config"),
    }

    def run(*words: str, program: tuple[str, ...] | None = None, **variables: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, *(program or sdk_program()), *words],
            env={**environment, **variables},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=_SOON_S,
        )
        return done.returncode, done.stdout, done.stderr

    return run


def test_status_shows_who_is_there_and_a_scheduler_that_was_away_is_found_again(farm: LoopbackFarm, sdk: Any) -> None:
    who = ("--farm-certificates", str(farm.user_folder))
    code, out, err = sdk("farm", "status", "--json", *who, SDK_SCHEDULER=farm.url)
    assert code == 0, err
    told = json.loads(out)
    assert [(worker["name"], worker["build_slots"]) for worker in told["workers"]] == [("lab1", 2)]
    assert told["devices"] == [] and told["runs"] == [] and told["scheduler"] == farm.url
    farm.scheduler.kill()
    farm.workers["lab1"].wait_for("The connection to the scheduler was lost.")
    farm.start_scheduler()
    farm.workers["lab1"].wait_for("lab1 (2 build slots) is ready")
    code, out, err = sdk("farm", "status", "--scheduler", farm.url, *who)
    assert code == 0 and "lab1" in out and "0 of 2 in use" in out, err


def test_what_is_refused_is_one_message_and_soon(farm: LoopbackFarm, sdk: Any, tmp_path: Path) -> None:
    def refused(expected: str, *words: str, **others: Any) -> None:
        started_s = time.monotonic()
        code, out, err = sdk("farm", *words, **others)
        assert (code, out) == (1, "") and err.startswith("sdk: ") and err.count("\n") == 1, err
        assert expected in err
        assert time.monotonic() - started_s < _SOON_S

    stranger = tmp_path / "stranger"
    make_certificates(stranger, [], [])
    to = ("--scheduler", farm.url)
    refused("another authority has made it", "status", *to, "--farm-certificates", str(stranger))
    refused("There is no", "status", *to)
    refused("sends nothing", "status", "--scheduler", farm.url.replace("tls", "tcp"))
    refused("No scheduler listens at", "status", "--scheduler", "tcp://127.0.0.1:1")
    host = ("--farm-certificates", str(farm.host_folder))
    worker = ("worker", "--no-devices", "--build-slots", "1", "--name", "lab2", *to, *host)
    message = "Worker lab2 differs from the scheduler. Halide: 21.0.0 on the scheduler, 20.0.0 on worker lab2."
    refused(message, *worker, program=("-c", _OTHER_HALIDE))
    assert "lab2" in farm.scheduler.wait_for("Refused: ")
    refused("The scheduler cannot listen", "scheduler", "--listen", farm.url, *host)


def test_a_users_certificate_serves_nobody(farm: LoopbackFarm, sdk: Any) -> None:
    user = ("--farm-certificates", str(farm.user_folder))
    worker = ("farm", "worker", "--no-devices", "--build-slots", "1", "--name", "evil", "--scheduler", farm.url, *user)
    code, _, err = sdk(*worker)
    assert code == 1 and "is a user's certificate, and a worker needs a host's. Make one with" in err
    code, _, err = sdk("farm", "scheduler", "--listen", farm.url, *user)
    assert code == 1 and "is a user's certificate, and a scheduler needs a host's." in err
    # A program of the user's own need not look at its certificate: the scheduler does.
    code, _, err = sdk(*worker, program=("-c", _WITHOUT_A_LOOK))
    assert code == 1 and "Worker evil has a user's certificate, and a worker needs a host's." in err
    assert "evil" in farm.scheduler.wait_for("Refused: Worker evil has")
    code, out, err = sdk("farm", "status", "--json", "--scheduler", farm.url, *user)
    assert [one["name"] for one in json.loads(out)["workers"]] == ["lab1"], err


def test_a_worker_that_cannot_be_reached_is_told_why(farm: LoopbackFarm, sdk: Any) -> None:
    to = ("--scheduler", farm.url, "--farm-certificates")
    worker = ("farm", "worker", "--no-devices", "--build-slots", "1", "--name", "lab4", *to, str(farm.host_folder))
    program = ("-c", _OUT_OF_REACH, *sdk_program()[2:])
    code, out, err = sdk(*worker, program=program)
    last = err.splitlines()[-1]
    assert code == 1 and last.startswith("sdk: lab4 could not join the farm"), err
    assert "the scheduler cannot connect to it at tls://127.0.0.1:1" in last and "look at the firewall" in last
    code, out, err = sdk("farm", "status", *to, str(farm.user_folder))
    assert code == 0 and "lab4" in out and "the scheduler cannot connect to it at tls://127.0.0.1:1" in out, err
    assert "lab1" in out, "the others are as they were"


def test_a_user_whose_certificate_is_revoked_is_refused(farm: LoopbackFarm, sdk: Any) -> None:
    authority = farm.host_folder.parents[1]
    make_certificates(authority, [], ["gone"])
    status = ("farm", "status", "--scheduler", farm.url, "--farm-certificates", str(authority / "users" / "gone"))
    code, _, err = sdk(*status)
    assert code == 0, err
    code, out, err = sdk("farm", "revoke", "gone", "--folder", str(authority))
    assert code == 0 and "gone" in out, err
    shutil.copy(authority / "revoked.pem", farm.host_folder)
    farm.scheduler.wait_for("The list of revoked certificates has changed.")
    code, out, err = sdk(*status)
    assert (code, out) == (1, "") and "it was revoked. Ask for a new one" in err and err.count("\n") == 1


def test_a_worker_that_is_told_to_end_says_goodbye(farm: LoopbackFarm, settings: Settings) -> None:
    farm.start_worker("lab3", settings, build_slots=1)
    process: FarmProcess = farm.workers.pop("lab3")
    assert process.end() == 0
    assert "lab3" in farm.scheduler.wait_for("Left: ")


def test_certificates_of_a_farm_are_made_shown_and_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SDK_CONFIG_DIR", str(tmp_path))
    assert main(["farm", "certificates", "--host", "lab1,192.168.1.5", "--user", "ana", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert [one["role"] for one in made["certificates"]] == ["authority", "host", "host", "user"]
    assert all(one["is_new"] for one in made["certificates"]) and made["folder"] == str(tmp_path / "farm")
    assert main(["farm", "certificates"]) == 0
    out = capsys.readouterr().out
    assert "192.168.1.5" in out and "in 729 days" in out and "(new)" not in out
    assert main(["farm", "certificates", "--host", "lab1", "--renew"]) == 0
    assert capsys.readouterr().out.count("(new)") == 1
    assert main(["farm", "revoke", "ana"]) == 0
    out = capsys.readouterr().out
    assert "now" in out and str(tmp_path / "farm" / "revoked.pem") in out.replace("\n", "")
    assert main(["farm", "revoke", "ana", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(one["name"], one["role"], one["is_new"]) for one in told["certificates"]] == [("ana", "user", False)]
    assert main(["farm", "certificates"]) == 0
    assert "(revoked)" in capsys.readouterr().out
    assert main(["farm", "revoke", "eve"]) == 2
    assert capsys.readouterr().err.startswith("sdk: No host or user of ")
    assert main(["farm", "certificates", "--host", "no host"]) == 2
    message = "sdk: 'no host' is not a host name or an address. Use, for example, lab1,192.168.1.5.\n"
    assert capsys.readouterr().err == message
