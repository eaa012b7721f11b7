"""An SSH server that asks for a password, without any account of this machine behind it.

A real sshd takes passwords of the system's accounts only. This is the server side of paramiko, and says only what a
program's output is when one is started.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import paramiko

PASSWORD = "pässword with spaces"
USER = "pi"


class PasswordServer:
    """Listens on a free port of loopback until it is stopped.

    Args:
        host_key: a private key file.
        methods: what it lets a user try: none, password, keyboard-interactive.
        questions: what keyboard-interactive asks; the first one is answered by the password.
        attempts: after so many failures it hangs up.

    Attributes:
        answers: what it was told, in order.
    """

    def __init__(
        self,
        host_key: Path,
        methods: Sequence[str] = ("password",),
        questions: Sequence[Sequence[tuple[str, bool]]] = ((("Password: ", False),),),
        attempts: int = 100,
    ) -> None:
        self.address = "127.0.0.1"
        self.methods = tuple(methods)
        self.questions = tuple(questions)
        self.attempts = attempts
        self.answers: list[str] = []
        self._host_key = paramiko.PKey.from_path(str(host_key))
        self._listener = socket.create_server((self.address, 0))
        self.port: int = self._listener.getsockname()[1]
        self._transports: list[paramiko.Transport] = []
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def stop(self) -> None:
        # Closing alone would not wake the thread that accepts.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        for transport in self._transports:
            transport.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            transport = _Transport(connection)
            transport.add_server_key(self._host_key)
            self._transports.append(transport)
            transport.start_server(event=threading.Event(), server=_Interface(self, transport))


class _Transport(paramiko.Transport):
    """Does what is to be done behind the next message that it sends."""

    then: Callable[[], None] | None = None

    def _send_user_message(self, data: paramiko.Message) -> None:
        super()._send_user_message(data)
        if threading.current_thread() is self and self.then is not None:
            then, self.then = self.then, None
            threading.Thread(target=then).start()


class _Interface(paramiko.ServerInterface):
    def __init__(self, server: PasswordServer, transport: _Transport) -> None:
        self._server = server
        self._transport = transport
        self._failures = 0
        self._asked = 0

    def get_allowed_auths(self, username: str) -> str:
        return ",".join(self._server.methods)

    def check_auth_none(self, username: str) -> int:
        return paramiko.AUTH_SUCCESSFUL if "none" in self._server.methods else paramiko.AUTH_FAILED

    def check_auth_password(self, username: str, password: str) -> int:
        self._server.answers.append(password)
        return self._verdict("password" in self._server.methods and password == PASSWORD)

    def check_auth_interactive(self, username: str, submethods: str) -> int | paramiko.InteractiveQuery:
        if "keyboard-interactive" not in self._server.methods:
            return self._verdict(False)
        return self._next_question()

    def check_auth_interactive_response(self, responses: list[str]) -> int | paramiko.InteractiveQuery:
        self._server.answers.extend(responses)
        if self._asked < len(self._server.questions):
            return self._next_question()
        return self._verdict(len(self._server.questions) == 1 and responses == [PASSWORD])

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        def answer() -> None:
            channel.sendall(command)
            channel.send_exit_status(0)
            channel.close()

        # Behind the word that the program was started: before it, the client would take the end for a refusal.
        self._transport.then = answer
        return True

    def _next_question(self) -> paramiko.InteractiveQuery:
        query = paramiko.InteractiveQuery("", "", *self._server.questions[self._asked])
        self._asked += 1
        return query

    def _verdict(self, is_right: bool) -> int:
        self._failures += not is_right
        if self._failures >= self._server.attempts:
            self._transport.close()
        return paramiko.AUTH_SUCCESSFUL if is_right else paramiko.AUTH_FAILED
