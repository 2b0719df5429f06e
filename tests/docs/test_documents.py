# SPDX-License-Identifier: GPL-2.0-or-later
"""Every document's commands are executed, and print what it shows.

    make test-docs                               all documents
    make test-docs ARGS="-k docs/reference/stops-and-inspection.md"   one of them

documents.py describes the convention for authors.
"""

import re

import pytest
from documents import TOP, DocumentError, documents, parse
from session import BlockFailed, Session


def name(path):
    return str(path.relative_to(TOP)) if hasattr(path, "parts") else "none"


def broken(path):
    try:
        return parse(path), None
    except DocumentError as error:
        return None, str(error)


PARSED = {path: broken(path) for path in documents()}
# Those that share a lab come first.
RUN = [
    pytest.param(d, id=name(d.path), marks=[pytest.mark.long(d.long)] if d.long else [])
    for d in sorted(
        (d for d, _ in PARSED.values() if d and d.blocks),
        key=lambda d: (not d.shares_lab, d.path),
    )
]


@pytest.mark.parametrize("path", PARSED, ids=name)
def test_convention(path):
    """Each block is marked: executed, output, or not run for a reason."""
    error = PARSED[path][1]
    if error:
        pytest.fail(error, pytrace=False)


@pytest.mark.parametrize("path", PARSED, ids=name)
def test_links(path):
    """The targets of a document's links exist."""
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        file, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        linked = (path.parent / file).resolve() if file else path
        assert linked.exists(), f"{name(path)} links to {target}, which is not there"
        if anchor and linked.suffix == ".md":
            heads = re.findall(r"^#+ (.*)$", linked.read_text(), re.MULTILINE)
            slugs = [re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads]
            assert anchor in slugs, f"{name(path)} links to {target}: no such heading"


@pytest.mark.parametrize("document", RUN)
def test_commands(document, labs):
    """The commands succeed, the output matches, nothing remains."""
    before = {p.name for p in TOP.iterdir()}
    if document.shares_lab:
        labs.share()
    elif labs.shared:
        labs.end()
    session = Session(labs.environment())
    failure = None
    try:
        for block in document.blocks:
            session.run(block)
    except BlockFailed as error:
        failure = str(error)
    finally:
        session.close()
    if failure:
        labs.end()
        pytest.fail(failure, pytrace=False)
    if not document.shares_lab:
        left = labs.end()
        assert not left, f"the document leaves labs up: {', '.join(left)}"
    made = {p.name for p in TOP.iterdir()} - before
    assert not made, f"the document leaves files in the checkout: {', '.join(sorted(made))}"


@pytest.mark.parametrize("path", PARSED, ids=name)
def test_excerpts(path):
    """Code in a tutorial is code of the program next to it."""
    programs = "".join(p.read_text() for p in path.parent.glob("*.c"))
    if not programs:
        pytest.skip("no program beside it")
    for block in re.findall(r"```c\n(.*?)```", path.read_text(), flags=re.DOTALL):
        assert block in programs, f"{name(path)} shows code that is in no program:\n{block}"
