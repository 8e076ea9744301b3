"""Tests of the questions, a folder each; and what other tests need to know of them."""

import os

import pytest

from webhook.questions import QUESTIONS

REMOVED = "REMOVED_QUESTIONS"  # the variable with which `tests.removal` names those that a copy lacks


def is_removed(question: str) -> bool:
    """Whether `tests.removal` runs the tests without a question.

    Raises:
        RuntimeError: the question is there, so that nothing may be skipped for want of it.
    """
    removed = question in os.environ.get(REMOVED, "").split()
    if removed and question in QUESTIONS:
        raise RuntimeError(f"{REMOVED} names `{question}`, which is there: unset it")
    return removed


def needs(question: str) -> pytest.MarkDecorator:
    """Skip a test that uses a question where `tests.removal` has removed it, and nowhere else."""
    return pytest.mark.skipif(is_removed(question), reason=f"`{question}` is removed")
