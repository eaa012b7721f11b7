"""Logging in to an SSH server: with nothing, with keys of the agent or of files, with a password."""

from __future__ import annotations

import base64
import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from halide_autotune.devices.device_trouble import DeviceTrouble, TroubleKind
from halide_autotune.devices.ssh.route import DEFAULT_PORT, SshHop
from halide_autotune.devices.ssh.secrets import SshSecrets
from halide_autotune.targets.errors import DeviceError
from halide_autotune.targets.values.texts import printable

_TIMED_OUT = "Authentication timeout."
# Servers hang up after a few (sshd's MaxAuthTries is 6); after fewer it is more likely the connection.
_MANY_ATTEMPTS = 3
_OPEN_TO_OTHERS = 0o077
_LARGEST_FILE_BYTES = 2**16
_SHOWN_CHARACTERS = 200
# It may wait for somebody to unlock it, or be forwarded from a machine that sleeps.
_AGENT_LIMIT_S = 10.0
AGENT_THREAD = "ssh-agent"


class SshAuthentication:
    """One attempt to log in to one server whose host key is trusted.

    Keys come first: those of the agent that belong to the hop's identity files, the agent's others, then the files.

    Args:
        transport: a paramiko.Transport after its key exchange.
        hop: the server.
        secrets: for encrypted keys and for a password.
    """

    def __init__(self, transport: Any, hop: SshHop, secrets: SshSecrets) -> None:
        self._transport = transport
        self._hop = hop
        self._secrets = secrets
        self._tried: list[str] = []
        self._next_step = ""
        # What the server accepts; None after the login.
        self._methods: Sequence[str] | None = ()

    def log_in(self) -> None:
        """Return when the server accepts the login.

        Raises:
            DeviceTrouble: nothing was accepted (REFUSED), or the connection ended (LOST, TIMEOUT).
        """
        self._attempt(lambda: self._transport.auth_none(self._hop.user))
        if self._methods is not None and "publickey" in self._methods:
            self._try_keys()
        if self._methods is not None:
            self._try_password()
        if self._methods is not None:
            self._secrets.forget()
            raise self._refused()

    def _attempt(self, request: Any) -> bool:
        """Whether the server accepted it, be it as one of several steps."""
        from paramiko import AuthenticationException, BadAuthenticationType, SSHException

        try:
            self._methods = request() or None
            return True
        except BadAuthenticationType as error:
            self._methods = error.allowed_types
            return False
        except AuthenticationException as error:
            if str(error) == _TIMED_OUT:
                raise self._ended(TroubleKind.TIMEOUT, "does not answer") from error
            if not self._transport.is_active():
                if len(self._tried) >= _MANY_ATTEMPTS:
                    raise self._refused("closes the connection after this many attempts") from error
                raise self._ended(TroubleKind.LOST, "closed the connection") from error
            return False
        except (SSHException, OSError, EOFError) as error:
            if not self._transport.is_active():
                raise self._refused(f"rejects the login ({_shown(str(error))})") from error
            return False

    def _try_keys(self) -> None:
        from paramiko import SSHException

        with contextlib.ExitStack() as opened:
            agent_keys: Sequence[Any] = ()
            if self._hop.keys.use_agent:
                try:
                    agent_keys = opened.enter_context(contextlib.closing(_agent())).get_keys()
                except (SSHException, OSError) as error:
                    self._tried.append(f"the agent ({error})")
            for label, key in self._keys(agent_keys):
                self._tried.append(label)
                if self._attempt(lambda key=key: self._transport.auth_publickey(self._hop.user, key)):
                    return

    def _keys(self, agent_keys: Sequence[Any]) -> Iterator[tuple[str, Any]]:
        files = {blob: path for path in self._hop.keys.files if (blob := public_blob(path)) is not None}
        matching = [key for key in agent_keys if key.asbytes() in files]
        others = [] if self._hop.keys.are_all else [key for key in agent_keys if key.asbytes() not in files]
        for key in (*matching, *others):
            yield f"the agent's key {key.comment or key.get_name()!r}", key
        done = {files[key.asbytes()] for key in matching}
        for path in self._hop.keys.files:
            if path in done or path.suffix == ".pub" or not (path.exists() or self._hop.keys.are_named):
                continue
            if (key := self._load(path)) is not None:
                yield str(path), key

    def _load(self, path: Path) -> Any:
        try:
            return load_key(path, lambda: self._secrets.passphrase(path, self._hop))
        except UnusableKeyError as error:
            self._tried.append(f"{path} ({error})")
        except DeviceError as error:
            self._tried.append(f"{path} (encrypted: {error.message})")
            self._next_step = error.next_step
        return None

    def _try_password(self) -> None:
        methods = self._methods or ()
        if "password" not in methods and "keyboard-interactive" not in methods:
            return
        try:
            password = self._secrets.password(self._hop)
        except DeviceError as error:
            self._tried.append(f"a password ({error.message})")
            self._next_step = error.next_step
            return
        if password is None:
            return
        self._tried.append("a password")
        user = self._hop.user
        if "password" in methods:
            self._attempt(lambda: self._transport.auth_password(user, password, fallback=False))
        else:
            self._attempt(lambda: self._transport.auth_interactive(user, _answer_once(password)))

    def _refused(self, how: str = "rejects the login") -> DeviceTrouble:
        hop = self._hop
        takes_keys = not self._methods or "publickey" in self._methods
        missing = "there is no key and no password" if takes_keys else "there is no password"
        tried = "; ".join(_shown(text) for text in self._tried) or f"nothing: {missing}"
        takes = f"; it accepts {' or '.join(_shown(name) for name in self._methods)}" if self._methods else ""
        port = "" if hop.port == DEFAULT_PORT else f"-p {hop.port} "
        keys = f"Install a key there (ssh-copy-id {port}{hop.user}@{hop.host}), name another key, or give"
        next_step = self._next_step or (
            f"{keys if takes_keys else 'Give'} the device password = 'prompt' in the inventory."
        )
        message = f"{hop.place} {how}{takes}. Tried: {tried}."
        return DeviceTrouble(TroubleKind.REFUSED, message, next_step=next_step)

    def _ended(self, kind: TroubleKind, how: str) -> DeviceTrouble:
        return DeviceTrouble(kind, f"{self._hop.place} {how} while logging in.", next_step="Try again.")


def _agent() -> Any:
    """This user's SSH agent, which has told its keys.

    Raises:
        TimeoutError: it does not answer.
        paramiko.SSHException, OSError: it is no agent, or gone.
    """
    from paramiko import Agent

    found: Future[Any] = Future()

    def ask() -> None:
        try:
            found.set_result(Agent())
        except Exception as error:  # told to whoever waits
            found.set_exception(error)

    # Nothing can end the question but its answer: a thread that the process does not wait for asks it.
    threading.Thread(target=ask, name=AGENT_THREAD, daemon=True).start()
    try:
        return found.result(_AGENT_LIMIT_S)
    except TimeoutError as error:
        if not found.done():
            found.add_done_callback(lambda late: late.exception() or late.result().close())
            raise TimeoutError("does not answer") from error
        raise


def _answer_once(password: str) -> Callable[..., list[str]]:
    """Answer one hidden question, once: a second one is not about the password."""
    answers = iter([password])

    def answer(title: str, instructions: str, questions: Sequence[tuple[str, bool]]) -> list[str]:
        return [next(answers, "")] if [shown for _, shown in questions] == [False] else [""] * len(questions)

    return answer


def _shown(text: str) -> str:
    return printable(text[:_SHOWN_CHARACTERS])


class UnusableKeyError(Exception):
    """A private key that cannot be used; its text says why, in a few words, and holds no secret."""


def load_key(path: Path, ask_passphrase: Callable[[], str | None]) -> Any:
    """The private key of a file, as a paramiko.PKey.

    Args:
        ask_passphrase: called when the key is encrypted; None when there is no passphrase.

    Raises:
        UnusableKeyError: it is missing, readable by others, of an unknown kind, or the passphrase does not open it.
    """
    try:
        status = path.stat()
        if status.st_uid == os.getuid() and status.st_mode & _OPEN_TO_OTHERS:
            raise UnusableKeyError("skipped, because others can read it: run chmod 600")
        if status.st_size > _LARGEST_FILE_BYTES:
            raise UnusableKeyError("too large for a key")
        try:
            return _read(path, None)
        except TypeError:
            # The cryptography package says so, and in no other case without a passphrase.
            passphrase = ask_passphrase()
        if passphrase is None:
            raise UnusableKeyError("encrypted, and there is no passphrase: add the key to the agent with ssh-add")
        return _read(path, passphrase.encode())
    except OSError as error:
        raise UnusableKeyError((error.strerror or "unreadable").lower()) from error


def public_blob(path: Path) -> bytes | None:
    """The public key beside a private one, as SSH sends it (or of `path` itself); None when there is none to read."""
    public = path if path.suffix == ".pub" else path.with_name(f"{path.name}.pub")
    try:
        with public.open("rb") as file:
            return base64.b64decode(file.read(_LARGEST_FILE_BYTES).split()[1], validate=True)
    except (OSError, IndexError, ValueError):
        return None


def _read(path: Path, passphrase: bytes | None) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm
    from paramiko import PKey, SSHException
    from paramiko.pkey import UnknownKeyType

    try:
        return PKey.from_path(str(path), passphrase)
    except (UnknownKeyType, UnsupportedAlgorithm) as error:
        raise UnusableKeyError("unsupported key type") from error
    except (SSHException, ValueError, TypeError, LookupError) as error:
        if isinstance(error, TypeError) and passphrase is None:
            raise
        raise UnusableKeyError("not a private key" if passphrase is None else "the passphrase is wrong") from error
