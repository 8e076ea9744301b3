"""Tests of the questions, a folder each; and what other tests need to know of them."""

import pytest

from webhook.questions import QUESTIONS


def needs(question: str) -> pytest.MarkDecorator:
    """Skip a test that uses a question, if it is gone."""
    return pytest.mark.skipif(question not in QUESTIONS, reason=f"`{question}` is gone")
