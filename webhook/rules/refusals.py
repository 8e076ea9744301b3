"""The check of the rules that report what no node can ever give a pod: the sentence is that of the family."""

from collections.abc import Callable, Iterator

from webhook.rules.context import Context, Finding
from webhook.rules.reviewed_pod import ReviewedPod


def refusals(rule: str) -> Callable[[ReviewedPod, Context], Iterator[Finding]]:
    """The check of a rule: what the verdicts with a reason of this rule say."""

    def check(pod: ReviewedPod, _context: Context) -> Iterator[Finding]:
        for refused in pod.never:
            if refused.never.reason.rule == rule:
                yield from (Finding(path, sentence) for path, sentence in pod.describe(refused))

    # The rule book finds the file of a rule by the module of its check.
    check.__module__ = f"webhook.rules.validate.{rule.replace('-', '_')}"
    return check
