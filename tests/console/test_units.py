"""Sentences as pages show them."""

import pytest

from webhook.console.texts import prose


@pytest.mark.parametrize(
    "text, shown",
    [
        ("plain", "plain"),
        ("run `vgpu-webhook doctor`, then `a < b`", "run <code>vgpu-webhook doctor</code>, then <code>a &lt; b</code>"),
        ("`all`", "<code>all</code>"),
        ("one ` alone <b>", "one ` alone &lt;b&gt;"),
        ("<script>`<img src=x>`", "&lt;script&gt;<code>&lt;img src=x&gt;</code>"),
        ("hidden \u202e`\u202e`", "hidden \\u202e<code>\\u202e</code>"),
        ("", ""),
    ],
)
def test_code_stands_out_and_nothing_gets_through(text: str, shown: str):
    assert str(prose(text)) == shown
