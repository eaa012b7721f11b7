"""Passwords of devices, asked for where someone can answer."""

from __future__ import annotations

import sys

from targets.errors import DeviceError


def ask_on_terminal(question: str) -> str:
    """Ask for a secret on the terminal, unseen.

    Raises:
        DeviceError: there is no terminal, or nothing was answered; the text is a part of a message.
    """
    import getpass

    if not sys.stdin.isatty():
        raise DeviceError(
            "there is no terminal to ask on",
            next_step='Run the command in a terminal; a password in the keyring (password = "keyring") needs none.',
        )
    try:
        answer = getpass.getpass(question)
    except EOFError as error:
        raise DeviceError("none was given") from error
    if not answer:
        raise DeviceError("none was given")
    return answer


def refuse_to_ask(question: str) -> str:
    """Ask nobody, where several devices are asked at once.

    Raises:
        DeviceError: always; the text is a part of a message.
    """
    del question
    raise DeviceError("it is not asked for here", next_step="`sdk devices check` asks for it.")
