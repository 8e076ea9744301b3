"""Options that several commands share, each defined once; webhook.cli.settings_options has those of the settings."""

import re
from collections.abc import Mapping
from enum import EnumMeta
from typing import TYPE_CHECKING, Any, get_args, get_origin

import click

from webhook import names
from webhook.cli.program import FILE, Decorator, OptionGroup, Parsed, bad_usage
from webhook.volcano.target import parse_version

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo  # most commands need no pydantic

    from webhook.parameters import Parameters


def refuse_both(namespaces: tuple[str, ...], all_namespaces: bool) -> None:
    """Refuse -n together with -A."""
    if namespaces and all_namespaces:
        raise bad_usage("--namespace and --all-namespaces exclude each other: leave out one")


def output_option(*formats: str, more: str = "") -> Decorator:
    """Add `-o`; the first format is the default."""
    return OptionGroup.OUTPUT.option(
        "-o", "--output", type=click.Choice(formats), default=formats[0], help=f"The format of the report.{more}"
    )


VERSIONS = ("volcano", "devicePlugin", "kubernetes")


def _settings_of_target(text: str) -> tuple[str, ...]:
    """The settings of the policy in `volcano=1.16.0,devicePlugin=1.13.0`."""
    settings = []
    for each in text.split(","):
        key, _, version = each.partition("=")
        if key not in VERSIONS:
            raise ValueError(f"{each!r} is not NAME=VERSION; the names are {', '.join(VERSIONS)}")
        settings.append(f'target.{key}="{".".join(map(str, parse_version(version)))}"')
    return tuple(settings)


# The command gets settings of the policy.
target_option: Decorator = click.option(
    "--target",
    type=Parsed("versions", _settings_of_target),
    default=(),
    show_default=False,
    metavar="NAME=VERSION,...",
    help="Other versions of volcano, devicePlugin and kubernetes.",
)


def _object_name(pattern: str) -> Parsed[str]:
    """The name of a Kubernetes object that matches a pattern."""

    def parse(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"{text!r} is not a name; use lower-case letters, digits and dashes")
        return text

    return Parsed("name", parse)


LABEL_NAME = _object_name(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")  # of a namespace or Service
OBJECT_NAME = _object_name(r"(?=.{1,253}$)[a-z0-9]([a-z0-9.-]*[a-z0-9])?")  # of most other objects


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
    choices = [one for part in get_args(hint) for one in get_args(part) or (part if isinstance(part, EnumMeta) else ())]
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


def pods_option(help_text: str) -> Decorator:
    """Add `--pods FILE`, which can be repeated; the command gets `pod_files`."""
    return click.option("--pods", "pod_files", type=FILE, multiple=True, help=help_text)


exempt_namespaces_option: Decorator = click.option(
    "--exempt-namespace",
    "exempt_namespaces",
    metavar="NAMESPACE",
    multiple=True,
    default=names.EXEMPT_NAMESPACES,
    help="A namespace that the webhook configurations leave out, so that it is not reviewed; '' for none; can be repeated.",
)
