"""Options that several commands share, each defined once, and the types of their values; webhook.cli.inputs has more."""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from enum import EnumMeta
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args, get_origin

import click

from webhook.cli.program import OptionGroup, bad_usage
from webhook.durations import format_duration, parse_duration, read_time
from webhook.errors import ConfigError
from webhook.volcano.target import parse_version

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo  # most commands need no pydantic

    from webhook.parameters import Parameters

PORT = click.IntRange(0, 65535)

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
Value = TypeVar("Value")

_URL = re.compile(r"\w+://")


def refuse_url(path: str) -> str:
    """The path, unless it is a URL."""
    if _URL.match(path):
        raise ConfigError(f"{path}: URLs are not read; download it first: curl -LO {path}")
    return path


def refuse_both(namespaces: tuple[str, ...], all_namespaces: bool) -> None:
    """Refuse -n together with -A."""
    if namespaces and all_namespaces:
        raise bad_usage("--namespace and --all-namespaces exclude each other: leave out one")


class File(click.Path):
    """A file or directory, never a URL."""

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
        found = parse_duration(text)
        if not least <= found <= most and (found or not zero):
            raise ValueError(f"{text!r} is not between {format_duration(least)} and {format_duration(most)}")
        return found

    return Parsed("duration", parse)


def _byte_size(text: str) -> int:
    found = re.fullmatch(r"([1-9]\d{0,9})(Mi|Gi|Ti)", text)
    size = int(found[1]) << {"Mi": 20, "Gi": 30, "Ti": 40}[found[2]] if found else 0
    if not 16 << 20 <= size <= 1 << 50:
        raise ValueError(f"{text!r} is not a size from 16Mi to 1024Ti, such as 4Gi")
    return size


def _namespaced_name(text: str) -> tuple[str, str]:
    namespace, slash, name = text.rpartition("/")
    if not name or (slash and not namespace) or "/" in namespace:
        raise ValueError(f"{text!r} is neither NAME nor NAMESPACE/NAME")
    return namespace, name


def _object_name(pattern: str) -> Parsed[str]:
    """The name of a Kubernetes object that matches a pattern."""

    def parse(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"{text!r} is not a name; use lower-case letters, digits and dashes")
        return text

    return Parsed("name", parse)


LABEL_NAME = _object_name(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")  # of a namespace or Service
OBJECT_NAME = _object_name(r"(?=.{1,253}$)[a-z0-9]([a-z0-9.-]*[a-z0-9])?")  # of most other objects
BYTE_SIZE = Parsed("size", _byte_size)  # `512Mi`, `4Gi`: bytes, at least 16Mi
POINT_IN_TIME = Parsed(
    "time", lambda text: read_time(text, datetime.now(UTC))
)  # `2h` ago, or a time, by default in UTC
NAMESPACED_NAME = Parsed("[namespace/]name", _namespaced_name)  # a tuple of both; the namespace may be empty


def output_option(*formats: str, more: str = "") -> Decorator:
    """Add `-o`; the first format is the default."""
    return OptionGroup.OUTPUT.option(
        "-o", "--output", type=click.Choice(formats), default=formats[0], help=f"The format of the report.{more}"
    )


VERSIONS = ("volcano", "devicePlugin", "kubernetes")


def _settings_of_target(text: str) -> tuple[str, ...]:
    """The settings of the policy in `volcano=1.16.0,devicePlugin=1.13.0`."""
    found = []
    for each in text.split(","):
        key, _, version = each.partition("=")
        if key not in VERSIONS:
            raise ValueError(f"{each!r} is not NAME=VERSION; the names are {', '.join(VERSIONS)}")
        found.append(f'target.{key}="{".".join(map(str, parse_version(version)))}"')
    return tuple(found)


# The command gets settings of the policy.
target_option: Decorator = click.option(
    "--target",
    type=Parsed("versions", _settings_of_target),
    default=(),
    show_default=False,
    metavar="NAME=VERSION,...",
    help="Other versions of volcano, devicePlugin and kubernetes.",
)


warnings_as_errors_option: Decorator = OptionGroup.OUTPUT.option(
    "--warnings-as-errors", is_flag=True, help="Exit with 3 if there are warnings and nothing worse."
)


def parameter_options(model: "type[Parameters]", *left_out: str, **more: Any) -> list[Decorator]:
    """The options for parameters: a list is repeated, yes or no is a flag.

    Args:
        model: the parameters.
        left_out: those without an option.
        more: a list of other names of an option, or its type.
    """
    return [
        OptionGroup.FILTERS.option(*_names(name, field, more), help=field.description, **_kind(name, field, more))
        for name, field in model.model_fields.items()
        if name not in left_out
    ]


def _names(name: str, field: "FieldInfo", more: Mapping[str, Any]) -> list[str]:
    spelled = name.replace("_", "-")
    short = [more[name]] if isinstance(more.get(name), str) else []
    return [*short, f"--{spelled}/--no-{spelled}" if field.annotation == bool | None else f"--{spelled}", name]


def _kind(name: str, field: "FieldInfo", more: Mapping[str, Any]) -> dict[str, Any]:
    hint = field.annotation
    several = get_origin(hint) is tuple
    if hint is bool:
        return {"is_flag": True}
    if hint == bool | None:
        return {"default": None}
    choices = [
        value for part in get_args(hint) for value in get_args(part) or (part if isinstance(part, EnumMeta) else ())
    ]
    if isinstance(more.get(name), click.ParamType):
        return {"type": more[name], "multiple": several}
    if choices and all(isinstance(value, str) for value in choices):
        return {"type": click.Choice(list(map(str, choices))), "multiple": several}
    return {"metavar": "GLOB", "multiple": several}


STORE_VARIABLE = "VGPU_WEBHOOK_STORE"


def store_option(help_text: str, *, required: bool = False) -> Decorator:
    """Add `--store`, the URL of a database; its default is not shown, as it may hold a password."""
    return click.option(
        "--store",
        metavar="URL",
        envvar=STORE_VARIABLE,
        required=required,
        show_default=False,
        help=f"{help_text} postgresql://USER:PASSWORD@HOST:5432/DATABASE or sqlite:////PATH; default ${STORE_VARIABLE}.",
    )


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
