"""What every command shares: exit codes, messages on standard error, click classes and values. Imports little, see main."""

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from enum import IntEnum, StrEnum
from functools import wraps
from importlib import import_module
from inspect import cleandoc, signature
from pathlib import Path
from typing import Any, Generic, TypeVar

import click

from webhook.durations import format_duration, parse_duration
from webhook.errors import ConfigError
from webhook.texts import visible

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
Value = TypeVar("Value")

_URL = re.compile(r"\w+://")


class ExitCode(IntEnum):
    """How a command ended; a code means the same in every command."""

    OK = 0
    FOUND = 1  # what the command looks for: a refusal, a change, something broken
    BAD_INPUT = 2
    WARNED = 3  # warnings only, under --warnings-as-errors
    NEVER = 4  # of `why`: it never fits
    INTERRUPTED = 130  # as a shell reports SIGINT
    TERMINATED = 143  # as a shell reports SIGTERM
    BROKEN_PIPE = 141  # as a shell reports SIGPIPE


def exit_code(*, bad_input: bool = False, found: bool = False, warned: bool = False) -> ExitCode:
    """How a command ends: by the worst of what happened.

    Args:
        bad_input: something could not be read or written.
        found: the command found what it looks for.
        warned: there are warnings, and --warnings-as-errors is given.
    """
    if bad_input:
        return ExitCode.BAD_INPUT
    if found:
        return ExitCode.FOUND
    return ExitCode.WARNED if warned else ExitCode.OK


def report_error(text: str) -> None:
    """Write one line to standard error that begins with `error:`."""
    _report("error", text)


def report_warning(text: str) -> None:
    """Write one line to standard error that begins with `warning:`."""
    _report("warning", text)


def report_fixed(text: str) -> None:
    """Write one line to standard error that begins with `fixed:`."""
    _report("fixed", text)


def _report(what: str, text: str) -> None:
    sys.stdout.flush()  # keeps the order where both streams are one terminal
    print(f"{what}: {visible(text)}", file=sys.stderr)


def bad_usage(text: str) -> click.UsageError:
    """The error for options that do not go together; raised within a command."""
    return click.UsageError(text, click.get_current_context())


class OptionGroup(StrEnum):
    """A heading of help, in the order of help; options that several commands share are under the others."""

    OWN = "Options"
    FILES = "Files"
    FILTERS = "Filters"
    OUTPUT = "Output"
    SETTINGS = "Settings from files"
    CLUSTER = "Cluster"

    def option(self, *names: str, **attributes: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Add an option under this heading, as click.option does."""
        return click.option(*names, cls=_GroupedOption, group=self, **attributes)


class _GroupedOption(click.Option):
    def __init__(self, *args: Any, group: OptionGroup, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = group


class Command(click.Command):
    """A command that takes `-o=json` as kubectl does, groups its options, and prints its epilog as it is written."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read `-o=json` as `-ojson`, and let every error name this command."""
        try:
            return super().parse_args(ctx, [re.sub(r"^-([A-Za-z])=", r"-\1", arg) for arg in args])
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options first, then the shared ones under their headings."""
        groups: dict[str, list[tuple[str, str]]] = {group: [] for group in OptionGroup}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if isinstance(param, click.Option) and record is not None:
                groups[getattr(param, "group", OptionGroup.OWN)].append(record)
        for heading, records in groups.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Keep the lines of examples and exit codes."""
        if self.epilog:
            formatter.write(f"\n{cleandoc(self.epilog)}\n")


class Group(click.Group):
    """A group of commands."""

    command_class = Command
    format_epilog = Command.format_epilog

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """List the commands in the order in which they are defined."""
        return list(self.commands)


_MEANT = {  # what stands for commands of other names
    "explain": "review --explain FILE` shows where pods fit",  # as `kubectl explain`
    "audit": "decisions FILE` reads the audit log",
}


class LazyGroup(Group):
    """A group that imports a command when it is called; help, completion and suggestions import none."""

    def __init__(self, *args: Any, modules: Mapping[str, str], summaries: Mapping[str, str], **kwargs: Any) -> None:
        """Create it.

        Args:
            args: as click.Group.
            modules: the module of each command, which holds it as `command`.
            summaries: one line for each command.
            kwargs: as click.Group.
        """
        super().__init__(*args, **kwargs)
        self._modules = modules
        for name, summary in summaries.items():
            self.add_command(click.Command(name, help=summary, short_help=summary))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Import the command that is called."""
        if args[0] in _MEANT:
            raise click.UsageError(f"no such command {args[0]!r}; `vgpu-webhook {_MEANT[args[0]]}", ctx)
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and command is not None:
            command = import_module(self._modules[name]).command
        return name, command, rest


def combined(
    name: str, make: Callable[..., Any], *decorators: Decorator, taken: Iterable[str] | None = None
) -> Decorator:
    """Add several options, and pass to the command one value that is made from theirs.

    Args:
        name: the parameter of the command.
        make: gets the options by name.
        decorators: add the options.
        taken: the options that `make` takes; None for the parameters that it lists.
    """
    keys = list(signature(make).parameters if taken is None else taken)

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def run(**values: Any) -> Any:
            value = make(**{key: values.pop(key) for key in keys})
            return command(**{name: value}, **values)

        decorated: Callable[..., Any] = run
        for decorator in reversed(decorators):
            decorated = decorator(decorated)
        return decorated

    return decorate


# --- values of options -----------------------------------------------------------------------------------------------


def refuse_url(path: str) -> str:
    """The path, unless it is a URL."""
    if _URL.match(path):
        raise ConfigError(f"{path}: URLs are not read; download it first: curl -LO {path}")
    return path


class File(click.Path):
    """A file or directory, never a URL."""

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002
        return "FILE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(refuse_url(value) if isinstance(value, str) else value, param, ctx)


FILE = File(path_type=Path)


class Parsed(click.ParamType[Value], Generic[Value]):
    """A value that a function reads, whose ValueError explains what is wrong."""

    def __init__(self, name: str, parse: Callable[[str], Value]) -> None:
        """Take the name for help texts, and the function."""
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read it; a default may be a value already."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def duration(
    least: timedelta = timedelta(0), most: timedelta = timedelta(days=365), *, zero: bool = True
) -> Parsed[timedelta]:
    """`90` (seconds), `30s`, `1h30m`, within limits; 0 is allowed unless `zero` is false."""

    def parse(text: str) -> timedelta:
        read = parse_duration(text)
        if not least <= read <= most and (read or not zero):
            raise ValueError(f"{text!r} is not between {format_duration(least)} and {format_duration(most)}")
        return read

    return Parsed("duration", parse)


def _namespaced_name(text: str) -> tuple[str, str]:
    namespace, slash, name = text.rpartition("/")
    if not name or (slash and not namespace) or "/" in namespace:
        raise ValueError(f"{text!r} is neither NAME nor NAMESPACE/NAME")
    return namespace, name


NAMESPACED_NAME = Parsed("[namespace/]name", _namespaced_name)  # a tuple of both; the namespace may be empty
