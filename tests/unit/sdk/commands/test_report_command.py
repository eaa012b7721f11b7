"""`sdk report`: the file, the table, the JSON, and the page that follows a live run."""

from __future__ import annotations

import http.client
import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.report.recorded_run import run_version
from halide_autotune.autotune_loop.report.run_page import PageOptions
from halide_autotune.sdk.main import main
from halide_autotune.sdk.service.report_server import ReportServer
from tests.chromium_page import CHROMIUM, ChromiumPage
from tests.recorded_run_folder import write_run_folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project") / "tuned" / "harris-arm64-1"
    write_run_folder(folder, 40)
    return folder


@pytest.fixture
def server(run: Path) -> Iterator[ReportServer]:
    made = ReportServer(run, PageOptions(follows=True))
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def get(server: ReportServer, path: str, host: str = "") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=120)
    connection.request("GET", path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_the_latest_run_gets_its_page_and_a_table(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(run.parents[1])
    assert main(["report", "--line", "by hand=2.5"]) == 0
    said = capsys.readouterr().out
    assert "harris for arm64\n40 schedules timed" in said and "failed: 1 search: crashed" in said and "batch_" in said
    page = (run / "report.html").read_text()
    assert "by hand" in page and "http://" not in page.partition("<script>")[0]


def test_json_for_machines(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "page.html"
    assert main(["report", str(run), "-o", str(output), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["report"] == str(output) and output.is_file()
    assert told["timed"] == 40 and told["failures"] == {"search: crashed": 1}
    (task,) = told["tasks"]
    assert (task["sample"], task["confirmed"], task["tuned_ms"], task["default_ms"]) == ("batch_0_0/1", True, 4.0, 6.5)
    assert (task["speed_up"], task["speed_up_low"], task["speed_up_high"]) == (1.5, 1.4, 1.6)
    assert task["fastest_in_rounds"]["timings"] == 1 and set(task["rank_correlation_by_round"]) == {"0", "1"}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nowhere"], 1, "is not a run folder"),
        (["--line", "by hand"], 2, "--line must be NAME=MILLISECONDS"),
        (["--line", "by hand=-1"], 2, "--line must be NAME=MILLISECONDS"),
        (["--serve", "-o", "x.html"], 2, "--serve writes no file"),
        ([], 2, "There is no run in"),
    ],
)
def test_wrong_use_is_one_message(
    arguments: list[str],
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", *arguments]) == code
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_cannot_be_written_is_one_message(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(run), "-o", str(tmp_path / "missing" / "page.html")]) == 1
    assert "cannot be written" in capsys.readouterr().err


def test_a_run_whose_path_is_no_utf8_has_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    write_run_folder(folder, 3)
    assert main(["report", str(folder)]) == 0, capsys.readouterr().err
    assert "caf?/samples" in (folder / "report.html").read_text()
    served = ReportServer(folder, PageOptions(follows=True))
    served.server_close()
    assert b"caf?/samples" in served.page()


def test_the_server_answers_two_paths_to_this_machine_alone(run: Path, server: ReportServer) -> None:
    assert get(server, "/")[0] == 200
    assert get(server, "/version") == (200, run_version(run))
    assert get(server, "/../run.toml")[0] == 404
    assert get(server, "/", host="rebound.example")[0] == 403


@pytest.mark.toolchain
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_the_page_follows_a_live_run(run: Path, server: ReportServer, tmp_path: Path) -> None:
    with ChromiumPage(tmp_path) as browser:
        browser.open(server.address)
        browser.wait_for("document.body && document.body.dataset.readyMs")
        assert "9 × out of luck" not in browser.evaluate("document.body.textContent")
        browser.evaluate("window.before = true")
        browser.wait_for("version !== null")
        with sqlite3.connect(run / "tuning.db") as connection:
            row = (None, "build", "out of luck", "It fell over.", "", 1, 0, None, 0.0)
            connection.execute(
                "INSERT INTO failures SELECT ?, ?, ?, ?, ?, ?, ?, ?, max(at_unix_s) + ? FROM failures", row
            )
        browser.wait_for("document.body && document.body.dataset.readyMs && !window.before")
        assert "out of luck" in browser.evaluate("document.body.textContent")
        assert browser.complaints == []
