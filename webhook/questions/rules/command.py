"""`vgpu-webhook rules`: every rule in one table, or one in full; also the findings of the engine itself."""

from dataclasses import asdict

import click

from webhook.cli.options import output_option
from webhook.cli.program import Command
from webhook.cli.terminal import Terminal
from webhook.errors import WebhookError
from webhook.mistakes import unknown_rule
from webhook.output.json import to_json
from webhook.questions.rules.text import explain_finding, in_full, markdown, markdown_in_full, table, to_value
from webhook.suites.rulebook import ENGINE_FINDINGS, EngineFinding, rows


def _ids(_ctx: object = None, _param: object = None, incomplete: str = "") -> list[str]:
    """The ids that begin so, for the Tab key."""
    known = [row.id for row in rows()] + [finding.id for finding in ENGINE_FINDINGS]
    return [rule for rule in known if rule.startswith(incomplete)]


@click.command("rules", cls=Command)
@click.argument("rule", required=False, metavar="[ID]", shell_complete=_ids)
@output_option("text", "json", "markdown")
def command(rule: str | None, output: str) -> None:
    """List every rule with its default level, or explain one: why it exists, and an example."""
    finding = next((finding for finding in ENGINE_FINDINGS if finding.id == rule), None)
    if finding is not None:
        _print_finding(finding, output)
        return
    chosen = [row for row in rows() if rule in (None, row.id)]
    if not chosen:
        raise WebhookError(unknown_rule(rule or "", _ids()))
    if output == "json":
        values = [to_value(row) | ({} if rule is None else {"text": row.text}) for row in chosen]
        print("[" + ",\n ".join(to_json(value) for value in values) + "]")
    elif output == "markdown":
        print("\n".join(markdown(chosen) if rule is None else markdown_in_full(chosen)))
    else:
        (table if rule is None else in_full)(chosen, Terminal())


def _print_finding(finding: EngineFinding, output: str) -> None:
    if output == "json":
        print(f"[{to_json({'kind': 'engine'} | asdict(finding))}]")
    elif output == "markdown":
        print("\n".join(markdown([finding])))
    else:
        explain_finding(finding, Terminal())
