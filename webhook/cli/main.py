"""`vgpu-webhook COMMAND`: runs a command, and turns whatever goes wrong into one line and an exit code.

A command is a module with `command`: `command.py` of a question, or a module of webhook.cli that SHELL names. It returns
an ExitCode, or None for OK; it raises WebhookError or click.UsageError. Only this module handles them, broken pipes and Ctrl-C.
"""

import io
import os
import signal
import sys
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path

import click

from webhook.cli.program import ExitCode, LazyGroup, report_error
from webhook.errors import ClusterError, WebhookError
from webhook.questions import QUESTIONS, package_of

SHELL = {
    "manifests": "Print the webhook configurations for a device config and a policy.",
    "certs": "Create, renew, repair or show the webhook's certificates in a cluster.",
    "serve": "Serve the admission webhook.",
    "console": "Serve web pages about the webhook: playground, fleet, decisions, rules, health.",
    "demo": "Start a standalone webhook and its console, send three pods and show what happens.",
    "help": "Explain a command.",
    "version": "Print the version.",
    "completion": "Print the completion script for a shell: bash, zsh or fish.",
}
COMMANDS = QUESTIONS | SHELL
MODULES = {name: f"{package_of(name)}.command" for name in QUESTIONS} | {name: f"webhook.cli.{name}" for name in SHELL}
_UNREACHED = "check the kubeconfig, and that the API server is reachable from here"
REMEDIES: dict[int, str] = {  # of what the API server answers, by status; 0 if it does not
    0: _UNREACHED,
    HTTPStatus.OK: _UNREACHED,  # what answers is something else
    HTTPStatus.UNAUTHORIZED: "log in anew, or name another kubeconfig with --kubeconfig FILE",
    HTTPStatus.FORBIDDEN: "ask an administrator for this right, or to run the command; docs/why.md says what works with the "
    "rights of one namespace",
}
COMPLETION_VARIABLE = "_VGPU_WEBHOOK_COMPLETE"  # the completion script sets it when the user presses Tab


@click.group(
    cls=LazyGroup,
    modules=MODULES,
    summaries=COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120, "show_default": True},
    epilog="""
    `vgpu-webhook COMMAND --help` explains a command. As `kubectl-vgpu`, this program is a plugin: kubectl vgpu COMMAND.
    """,
)
@click.version_option(package_name="volcano-vgpu-webhook", prog_name="vgpu-webhook", message="%(prog)s %(version)s")
@click.pass_context
def program(context: click.Context) -> None:
    """Repairs or refuses pods that request a slice of a GPU from Volcano."""
    if context.invoked_subcommand is None:
        print(context.get_help())


def main(argv: Sequence[str] | None = None, name: str = "") -> int:
    """Run a command.

    Args:
        argv: the arguments; None for those of the process.
        name: what help and usage call the program; empty for the name that it was called by.

    Returns:
        The exit code.
    """
    if os.getpid() == 1:  # as in a container, where the kernel ignores SIGTERM until there is a handler
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(ExitCode.TERMINATED))
    _prepare_streams()
    name = name or _called_as()
    try:
        code = _complete(name) if COMPLETION_VARIABLE in os.environ else _run(argv, name)
        sys.stdout.flush()
    except click.UsageError as error:
        report_error(_usage(error))
    except WebhookError as error:
        report_error(_problem(error))
    except BrokenPipeError:  # the reader, for example `head`, left before the end
        _discard_output()
        return ExitCode.BROKEN_PIPE
    except OSError as error:
        _discard_output()
        report_error(_file_problem(error))
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    else:
        return code
    return ExitCode.BAD_INPUT


def _run(argv: Sequence[str] | None, name: str) -> int:
    try:
        with program.make_context(name, list(sys.argv[1:] if argv is None else argv)) as context:
            return program.invoke(context) or ExitCode.OK
    except click.exceptions.Exit as ended:  # --help and --version
        return ended.exit_code


def _complete(name: str) -> int:
    from click.shell_completion import shell_complete  # noqa: PLC0415  # only the shell's Tab key needs it

    return shell_complete(program, {}, name, COMPLETION_VARIABLE, os.environ[COMPLETION_VARIABLE])


def _called_as() -> str:
    return "kubectl vgpu" if Path(sys.argv[0]).stem == "kubectl-vgpu" else "vgpu-webhook"


def _problem(error: WebhookError) -> str:
    """What is wrong, and what to do if the API server refuses the user, or does not answer as one."""
    remedy = REMEDIES.get(error.status) if isinstance(error, ClusterError) else None
    return f"{error}; {remedy}" if remedy else str(error)


def _usage(error: click.UsageError) -> str:
    """One sentence: what is wrong, and what to do."""
    message = error.format_message()
    message = " ".join(message.split()).replace(". Choose from: ", "; choose from ")
    message = message[:1].lower() + message[1:].rstrip(".")
    if "Did you mean" in message or error.ctx is None:
        return message
    return f"{message}; see `{error.ctx.command_path} --help`"


def _file_problem(error: OSError) -> str:
    from webhook.mistakes import mistake_in_file  # noqa: PLC0415  # imports pydantic

    if error.filename is None:
        return f"cannot write the report: {error.strerror}"
    return f"{error.filename}: {mistake_in_file(error)}"


def _prepare_streams() -> None:
    """Replace closed streams, and let no character that a terminal cannot show end a report."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115  # as long as the process
        elif mode == "w" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Send what is still buffered nowhere, so that Python does not fail on it at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
