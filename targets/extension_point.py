"""Where installed packages add to what the SDK has: groups of entry points, as package installers write them.

A package names what it adds in its pyproject.toml, as `[project.entry-points."GROUP"]` with `name = "module:object"`.
Nothing of a package is imported before something of it is asked for by name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from halide_autotune.targets.errors import SdkError, UsageError
from halide_autotune.targets.values.checks import Unfit, nearest_hint, one_of
from halide_autotune.targets.values.texts import printable

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_MOST_CHARACTERS = 300


@dataclass(frozen=True)
class ExtensionPoint:
    """One kind of thing that packages may add.

    Attributes:
        group: of the entry points.
        noun: what one is called in messages.
        protocol: what its documentation is called, such as 'sdk.Technique'.
        methods: that it must have.
        built_in: names that are always there, and cannot be taken.
        remedy: how to do without one, such as 'leave it out of --technique'.
        is_made: its entry points lead to what is called to make one; else to what is used as it is.
    """

    group: str
    noun: str
    protocol: str
    methods: tuple[str, ...]
    built_in: tuple[str, ...]
    remedy: str
    is_made: bool = True

    def installed(self) -> list[EntryPoint]:
        """The entry points of installed packages, by name; nothing of theirs is imported."""
        from importlib.metadata import entry_points  # takes long to import, and most commands need none

        return sorted(entry_points(group=self.group), key=lambda entry: (entry.name, entry.value))

    def names(self) -> list[str]:
        """All that can be named: what is built in, then what packages add."""
        return [*self.built_in, *sorted({entry.name for entry in self.installed()} - {*self.built_in})]

    def check_name(self, value: object) -> str:
        """A check for the name of one, in a file; packages are looked for only where it is not built in.

        Raises:
            Unfit: there is none of that name.
        """
        if isinstance(value, str) and value in self.built_in:
            return value
        try:
            return one_of(self.names())(value)
        except Unfit as error:
            error.next_step = f"Correct it, or install the package that has the {self.noun}."
            raise

    def refuse_taken(self, names: Collection[str]) -> None:
        """Refuse packages that claim one of these names where it is built in: which one is meant must not be guessed.

        Raises:
            UsageError: there is one.
        """
        for entry in self.installed():
            if entry.name in names and entry.name in self.built_in:
                step = f"Give it a name that is none of {', '.join(self.built_in)}, or uninstall {_owner(entry)}."
                raise self.fault(entry, "has the name of a built-in one", step)

    def load(self, name: str) -> Any:
        """What the entry point of a name leads to, imported.

        Raises:
            UsageError: there is none or more than one of that name, it cannot be imported or called.
        """
        found = [entry for entry in self.installed() if entry.name == name]
        if not found:
            known = self.names()
            raise UsageError(
                f"There is no {self.noun} {name!r}{nearest_hint(name, known)}.",
                next_step=f"Name one of {', '.join(known)}, or install the package that has it.",
            )
        entry = found[0]
        if len(found) > 1:
            owners = " and ".join(sorted(_owner(each) for each in found))
            raise self.fault(entry, f"is in {owners}", f"Uninstall one of them, or {self.remedy}.")
        try:
            loaded = entry.load()
        except (Exception, SystemExit) as error:  # it is somebody else's code
            raise self.fault(entry, f"cannot be imported: {told(error)}") from error
        if self.is_made and not callable(loaded):
            raise self.fault(entry, f"is {_a(loaded)}, and cannot be called to make one")
        return loaded

    def make(self, name: str, *arguments: object) -> Any:
        """What a package's class or function makes of the arguments.

        Raises:
            SdkError: one that the package raises.
            UsageError: as `load`; or it cannot be made, or lacks a method.
        """
        return self.checked(name, self.load(name), *arguments)

    def checked(self, name: str, factory: Callable[..., Any], *arguments: object) -> Any:
        """The same, by a class or function that is loaded.

        Raises:
            SdkError: as `make`.
        """
        try:
            made = factory(*arguments)
        except SdkError:
            raise
        except (Exception, SystemExit) as error:
            raise self._unfit(name, f"cannot be made: {told(error)}") from error
        lacking = [method for method in self.methods if not callable(getattr(made, method, None))]
        if lacking:
            raise self._unfit(name, f"made {_a(made)}, which has no method `{lacking[0]}`")
        return made

    def _unfit(self, name: str, fault: str) -> UsageError:
        entry = next((entry for entry in self.installed() if entry.name == name), None)
        return UsageError(f"The {self.noun} {fault}.") if entry is None else self.fault(entry, fault)

    def entry(self, name: str) -> EntryPoint:
        """The entry point of a name that is there."""
        return next(entry for entry in self.installed() if entry.name == name)

    def fault(self, entry: EntryPoint, fault: str, next_step: str = "") -> UsageError:
        """The error about what a package adds: which, of which group, what is wrong and what to do."""
        step = f"Mend it ({self.protocol} says what it must be), or {self.remedy}."
        return UsageError(f"{self._title(entry)} {fault}.", next_step=next_step or step)

    def title(self, name: str) -> str:
        """What messages call the one of that name: with its module, its package and the group."""
        return self._title(self.entry(name))

    def _title(self, entry: EntryPoint) -> str:
        return f"The {self.noun} {entry.name!r} ({entry.value}, of {_owner(entry)}, group {self.group})"

    def problem(self, entry: EntryPoint) -> UsageError | None:
        """Why one could not be used, as far as that is known without making it; None if nothing is wrong."""
        try:
            self.refuse_taken([entry.name])
            self.load(entry.name)
        except UsageError as error:
            return error
        return None


def told(error: BaseException) -> str:
    """What an exception of somebody else's code says, on one line."""
    return printable(f"{type(error).__name__}: {error}")[:_MOST_CHARACTERS]


def _owner(entry: EntryPoint) -> str:
    return "an unknown package" if entry.dist is None else f"the package {entry.dist.name}"


def _a(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[:1] in 'aeiouAEIOU' else 'a'} {name}"
