"""Options for the manifests that commands read, and for those that they leave out."""

from collections.abc import Sequence
from typing import NamedTuple

import click

from webhook.cli.program import Decorator, OptionGroup, Parsed, bad_usage, combined, refuse_url
from webhook.inputs.documents import manifest_files
from webhook.inputs.label_selector import parse_label_selector


class FileArguments(NamedTuple):
    """Files and directories of the command line.

    Attributes:
        paths: as given; `-` is standard input.
        recursive: whether directories below directories count.
        exclude: globs of what to leave out of directories.
    """

    paths: tuple[str, ...]
    recursive: bool
    exclude: tuple[str, ...]

    @property
    def files(self) -> list[str]:
        """The files, those of directories among them.

        Raises:
            ConfigError: a directory cannot be read, or holds nothing.
        """
        return [
            file for path in self.paths for file in manifest_files(path, recursive=self.recursive, exclude=self.exclude)
        ]


def files_option(what: str, *, required: bool = True) -> Decorator:
    """Add FILE…, `-f/--filename`, `-R` and `--exclude`; the command gets `given`."""

    def make(paths: Sequence[str], filename: Sequence[str], recursive: bool, exclude: tuple[str, ...]) -> FileArguments:
        named = tuple(map(refuse_url, (*filename, *paths)))
        if required and not named:
            raise bad_usage("name a file, a directory or - for standard input")
        return FileArguments(named, recursive, exclude)

    return combined(
        "given",
        make,
        click.argument("paths", nargs=-1, metavar="[FILE]..."),
        OptionGroup.FILES.option(
            "-f",
            "--filename",
            multiple=True,
            metavar="FILE",
            help=f"{what} Also a directory, or - for standard input; can be repeated.",
        ),
        OptionGroup.FILES.option(
            "-R", "--recursive", is_flag=True, help="Read the directories below a directory, too."
        ),
        OptionGroup.FILES.option(
            "--exclude",
            multiple=True,
            metavar="GLOB",
            help="Files and directories to leave out of a directory, by name or by path below it; can be repeated.",
        ),
    )


selector_option: Decorator = click.option(
    "-l",
    "--selector",
    type=Parsed("selector", parse_label_selector),
    default="",
    show_default=False,
    help="Only objects with these labels, as kubectl takes them: app=web,tier!=db,env in (a, b),!old.",
)
