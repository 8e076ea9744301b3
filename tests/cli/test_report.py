"""Findings as a page of HTML and as a CSV table: whatever the names are, neither runs anything."""

import csv
import io
import re

import pytest

from tests.console.pages import Page
from webhook.cli.ci import Reported, ScanRow, scanned
from webhook.cli.complaints import Complaints
from webhook.cli.report import COLUMNS, WRITERS
from webhook.document_review import LocatedFinding
from webhook.pod.owners import Subject
from webhook.rules.choices import Level

HOSTILE = [
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</td></table>", "&lt;b&gt;", "'; x='", "\x00\x1b[31m\u202e",
    "=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "a\n=1", '","=1', "=cmd|' /C calc'!A0",
]  # fmt: skip


def reported(word: str) -> Reported:
    subject = Subject(word, word, word, word, "")
    finding = LocatedFinding(word, Level.DENY, word, word, word, 1, 2, 3)
    return Reported(subject, [ScanRow(subject, finding, 2, word, word)], word, word)


def written(form: str, *some: Reported, complaints: tuple[str, ...] = (), notes: tuple[str, ...] = ()) -> str:
    stream = io.StringIO()
    writer = WRITERS[form](stream)
    for one in some:
        writer.add(one)
    writer.finish(Complaints(len(complaints), [*complaints]), notes)
    return stream.getvalue()


@pytest.mark.parametrize("word", HOSTILE)
def test_hostile_names_stay_text_on_the_page(word: str):
    usual, hostile = (
        Page(written("html", reported(each), complaints=(each,), notes=(each,))) for each in ("usual", word)
    )
    assert [each.keys() for each in hostile.elements] == [each.keys() for each in usual.elements]
    assert [each["tag"] for each in hostile.elements] == [each["tag"] for each in usual.elements]
    if word.isprintable():
        assert hostile.text.count(word) >= 9
    assert hostile.text.replace("\n", "").isprintable()


def test_the_page_loads_nothing_and_is_readable_in_light_and_dark():
    text = written("html", reported("usual"))
    page = Page(text)
    assert not {"script", "img", "iframe", "object", "form", "base"} & {tag for tag, _ in page.kinds}
    assert {name for _, names in page.kinds for name in names} <= {
        "lang", "charset", "name", "content", "http-equiv", "scope", "class", "href",
    }  # fmt: skip
    assert all(value.startswith("https://") for _, name, value in page.values if name == "href")
    assert "url(" not in text
    assert "@import" not in text
    policy = next(found["content"] for found in page.elements if "http-equiv" in found)
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"
    assert "color-scheme: light dark" in text
    colours = re.findall(r"light-dark\((#\w+), (#\w+)\)", text)
    assert 2 * len(colours) == text.count("#") - text.count(".md#")


@pytest.mark.parametrize("word", HOSTILE)
def test_no_cell_is_a_formula(word: str):
    head, row = csv.reader(io.StringIO(written("csv", reported(word))))
    assert tuple(head) == COLUMNS
    assert len(row) == len(COLUMNS)
    assert row[4:6][0] == "2"
    for cell in row:
        assert cell.isprintable()
        assert not cell.startswith(("=", "+", "-", "@"))


def test_objects_without_findings_are_fine_or_skipped():
    subject = Subject("team", "v1", "Pod", "a", "")
    fine = Reported(subject, [ScanRow(subject, None, file="f.yaml")], "f.yaml")
    skipped = Reported(subject, [], "f.yaml", skipped="the namespace is exempt")
    assert written("csv", fine, skipped).splitlines()[1:] == [
        "team,v1,Pod,a,,,fine,,,,f.yaml,,",
        "team,v1,Pod,a,,,skipped,,,the namespace is exempt,f.yaml,,",
    ]
    assert "1 fine, 1 skipped" in Page(written("html", fine, skipped)).text
    assert "nothing found" in Page(written("html")).text


def test_rows_of_an_object_are_together():
    subjects = [Subject("team", "v1", "Pod", name, "") for name in "aab"]
    found = list(scanned([ScanRow(subject, None, file=f"{at}.yaml") for at, subject in enumerate(subjects)]))
    assert [(one.name, len(one.rows), one.file) for one in found] == [
        ("team/Pod/a", 2, "0.yaml"),
        ("team/Pod/b", 1, "2.yaml"),
    ]
