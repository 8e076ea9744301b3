"""Text of messages on pages."""

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
def test_code_is_marked_and_markup_is_escaped(text: str, shown: str):
    assert str(prose(text)) == shown
