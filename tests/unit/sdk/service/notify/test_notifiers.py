"""Programs and webhooks that are told how a run has ended: real processes, and a real server on this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from halide_autotune.autotune_loop.events import ignore
from halide_autotune.sdk.display.display import RESUME_IT
from halide_autotune.sdk.service.notify.notifier import FILE_NAME, Notifier, choose_notifiers
from halide_autotune.sdk.service.notify.program import ProgramNotifier
from halide_autotune.sdk.service.notify.run_end import RunEnd
from halide_autotune.sdk.service.notify.webhook import WebhookNotifier
from halide_autotune.sdk.settings import Settings
from halide_autotune.targets.errors import DeviceError, UsageError
from tests.unit.sdk.display.recorded_run import RESULT, STARTED

SECRET = "s3cr3t-t0ken"


@dataclass
class Receiver:
    """A server that answers every request alike and keeps what was posted."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    posted: list[bytes] = field(default_factory=list)
    answers: threading.Event = field(default_factory=threading.Event)
    url: str = ""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    known = Receiver()
    known.answers.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            known.posted.append(self.rfile.read(int(self.headers["Content-Length"])))
            known.answers.wait()
            self.send_response(known.status)
            for name, value in known.headers.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return None

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        known.url = f"http://127.0.0.1:{server.server_port}/hooks/{SECRET}"
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield known
        known.answers.set()
        server.shutdown()


def program(folder: Path, text: str) -> Path:
    path = folder / "tell"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_program_gets_the_document_and_its_own_arguments(tmp_path: Path) -> None:
    told = tmp_path / "told"
    tell = ProgramNotifier((str(program(tmp_path, f'cat > "{told}"; echo "$*" >> "{told}"')), "a b", "$(c)"), {})
    assert (tell.label, tell.send('{"event": "result"}')) == ("tell", "")
    assert told.read_text() == '{"event": "result"}a b $(c)\n'


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("echo too far >&2; exit 3", "it exited with code 3: too far"),
        ("kill -9 $$", "it was ended by SIGKILL"),
        ("printf 'a\\033[2Jb' >&2; exit 1", "it exited with code 1: a [2Jb"),
    ],
)
def test_a_program_that_fails_says_why(tmp_path: Path, text: str, trouble: str) -> None:
    assert ProgramNotifier((str(program(tmp_path, text)),), {}).send("{}") == trouble


def test_a_program_that_is_gone_is_told(tmp_path: Path) -> None:
    assert ProgramNotifier((str(tmp_path / "gone"),), {}).send("{}").startswith("it cannot be started: No such file")


def test_a_webhook_gets_the_document(receiver: Receiver) -> None:
    assert WebhookNotifier.at(receiver.url, "--notify").send('{"event": "result"}') == ""
    assert receiver.posted == [b'{"event": "result"}']


@pytest.mark.parametrize(
    ("status", "headers"), [(404, {}), (500, {}), (302, {"Location": "http://127.0.0.1:9/other"}), (307, {})]
)
def test_a_webhook_that_refuses_or_leads_elsewhere_is_told(
    receiver: Receiver, status: int, headers: dict[str, str]
) -> None:
    receiver.status, receiver.headers = status, headers
    assert WebhookNotifier.at(receiver.url, "--notify").send("{}") == f"it answered with status {status}"


def test_a_webhook_that_does_not_answer_is_not_waited_for(receiver: Receiver) -> None:
    receiver.answers.clear()
    assert WebhookNotifier.at(receiver.url, "--notify").send("{}", 0.1).startswith(("it did not answer", "it cannot"))


def test_a_webhook_where_nobody_listens_is_told_without_its_url() -> None:
    nobody = WebhookNotifier.at(f"http://127.0.0.1:1/{SECRET}", "--notify")
    trouble = nobody.send("{}")
    assert trouble.startswith("it cannot be reached: ") and SECRET not in trouble + repr(nobody) + nobody.label


@pytest.mark.parametrize(
    "url",
    [
        f"http://hooks.example/{SECRET}",
        f"ftp://hooks.example/{SECRET}",
        f"https:///{SECRET}",
        f"https://[{SECRET}",
        f"https://hooks.example:port/{SECRET}",
        f"https://hooks.example/{SECRET} x",
        f"https://hooks.example/é{SECRET}",
    ],
)
def test_a_url_that_cannot_be_used_is_refused_without_being_shown(settings: Settings, url: str) -> None:
    with pytest.raises(UsageError, match="--notify: the URL cannot be used") as caught:
        choose_notifiers([url], settings)
    assert SECRET not in str(caught.value) and "https://" in caught.value.next_step


def test_a_program_that_is_not_there_is_refused_before_the_run(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no program .* that can be started"):
        choose_notifiers([str(tmp_path / "gone")], settings)


def test_what_is_given_counts_and_else_the_users_own_settings(settings: Settings, tmp_path: Path) -> None:
    own = replace(settings, config_folder=tmp_path)
    tell = program(tmp_path, "exit 0")
    assert choose_notifiers([], own) == []
    (tmp_path / FILE_NAME).write_text(f'command = ["{tell}", "--loud"]\nurl = "https://hooks.example/{SECRET}"\n')
    named = choose_notifiers([], own)
    assert [one.label for one in named] == ["tell", "hooks.example"]
    assert isinstance(named[0], ProgramNotifier) and named[0].command == (str(tell), "--loud")
    assert [one.label for one in choose_notifiers(["https://other.example/x"], own)] == ["other.example"]
    assert choose_notifiers(["none"], own) == []
    with pytest.raises(UsageError, match="--notify none excludes"):
        choose_notifiers(["none", str(tell)], own)


def test_a_settings_file_that_is_wrong_is_named_without_its_url(settings: Settings, tmp_path: Path) -> None:
    own = replace(settings, config_folder=tmp_path)
    (tmp_path / FILE_NAME).write_text(f'url = "http://hooks.example/{SECRET}"\n')
    with pytest.raises(UsageError, match=r"notify\.toml: url: the URL cannot be used") as caught:
        choose_notifiers([], own)
    assert SECRET not in str(caught.value)


@dataclass
class Kept:
    """A notifier of this process."""

    trouble: str = ""
    label: str = "kept"
    documents: list[dict[str, object]] = field(default_factory=list)

    def send(self, document: str) -> str:
        self.documents.append(json.loads(document))
        return self.trouble


def test_all_are_told_the_result_and_one_that_fails_is_one_warning() -> None:
    warnings: list[str] = []
    first, second = Kept(trouble="it has no power"), Kept()
    notifiers: list[Notifier] = [first, second]
    RunEnd(notifiers, warnings.append).finished(RESULT, {RESUME_IT: "sdk autotune --resume x"})
    assert warnings == ["kept was not notified: it has no power."]
    (told,) = second.documents
    assert first.documents == second.documents
    assert (told["event"], told["outcome"]) == ("result", "finished")
    assert told["resume_command"] == "sdk autotune --resume x"
    assert told["text"] == "blur for arm64 (finished): 2.05 times as fast"


def test_whatever_a_notifier_raises_is_a_warning_without_its_text() -> None:
    class Broken(Kept):
        def send(self, document: str) -> str:
            raise ValueError(SECRET)

    warnings: list[str] = []
    after = Kept()
    RunEnd([Broken(), after], warnings.append).finished(RESULT, {})
    assert warnings == ["kept was not notified: unexpected ValueError."] and len(after.documents) == 1


def test_an_error_is_told_once_the_run_has_begun() -> None:
    kept = Kept()
    end = RunEnd([kept], lambda text: None)
    end.failed(DeviceError("pi5 is gone."))
    assert kept.documents == []
    end.watching(ignore)(STARTED)
    end.failed(DeviceError("pi5 is gone.", next_step="Switch it on."))
    end.failed(ValueError("a bug with private details"))
    known, bug = kept.documents
    assert (known["event"], known["message"]) == ("failed", "pi5 is gone. Switch it on.")
    assert known["run_folder"] == STARTED.run_folder
    assert bug["message"] == "unexpected error (ValueError)"
