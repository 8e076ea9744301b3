"""Questions that people ask, one package each: the answer, and its command, text and page.

A line in QUESTIONS makes a package known to the command line and to the console, which import `command.py` and
`page.py` of it when they need them. To remove a question, delete its package, its line and its page of the documentation.
"""

QUESTIONS = {
    "review": "Show what the webhook does with manifests or recorded reviews.",
    "convert": "Print manifests for HAMi, KAI or another such system in this cluster's names.",
    "test": "Test a policy: compare reviews with what suites expect of them.",
    "scan": "Show what the webhook would refuse, repair or warn about among existing pods and workloads.",
    "usage": "Show who holds which slice of which device, and what is free.",
    "why": "Show why a pod waits: it never fits, it does not fit now, or it fits now.",
    "what-if": "Show what would start, and what would not fit again, if nodes came or went or cards changed.",
    "decisions": "Read the audit log: list, filter or sum up its decisions.",
    "replay": "Show which recorded decisions change with another policy, device config or fleet.",
    "rules": "List the rules, or explain one.",
    "policy": "Check a policy file, or print the default policy or its schema.",
    "doctor": "Find out what is wrong with the cluster around the webhook.",
}


def package_of(question: str) -> str:
    """The package of a question, as its name is spelled on the command line."""
    return f"{__name__}.{question.replace('-', '_')}"
