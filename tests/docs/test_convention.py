# SPDX-License-Identifier: GPL-2.0-or-later
"""The harness itself: it must find errors in a document."""

import pytest
from documents import TOP, DocumentError, mismatch, parse
from session import BlockFailed, Session

PATH = TOP / "docs" / "made-up.md"


def blocks(text):
    return parse(PATH, text).blocks


@pytest.fixture
def session():
    session = Session({})
    yield session
    session.close()


def run(session, text):
    for block in blocks(text):
        said = session.run(block)
    return said


# ------------------------------------------------------------------ parsing


def test_blocks_and_their_output():
    found = blocks("""
# Head
<!-- deadline: 90 s -->
```sh
echo one
```
It prints:
<!-- numbers vary -->
```output
one 5
```
- in a list:
  ```sh
  echo two
  ```
<!-- run: rm -rf hidden -->
""")
    assert [b.text for b in found] == ["echo one", "echo two", "rm -rf hidden"]
    assert [b.deadline for b in found] == [90, 120, 120]
    assert found[0].output[0].text == "one 5" and found[0].output[0].vary
    assert [b.hidden for b in found] == [False, False, True]
    assert found[0].line == 5


@pytest.mark.parametrize(
    "text, word",
    [
        ("```\nmake run\n```", "without a word"),
        ("```text\nmake run\n```", "not executed"),
        ("```bash\nls\n```", "not executed"),
        ("```output\nx\n```", "no commands"),
        ("```sh\nls\n```\n# Next\n```output\nx\n```", "no commands"),
        ("```sh\nls\n", "without end"),
        ("```sh\nls\n```\n```output\nMon Nov 23 13:32:33 2026\n```", "tomorrow"),
        ("```sh\nls\n```\n```output\nlog of Nov  3\n```", "tomorrow"),
        ("<!-- not run:\n", "without end"),
        ("<!-- not run: -->\n```\nls\n```", "not understood"),
        ("<!-- deadline: long -->\n```sh\nls\n```", "not understood"),
        ("<!-- not run: no -->\n```sh\nls\n```", "does not fit"),
        ("<!-- numbers vary -->\n```sh\nls\n```", "does not fit"),
        ("<!-- exit status: 1 -->\n", "does not fit"),
        ("<!-- needs: a lab -->", "not understood"),
        ("```sh\nlab/qhca-lab exec a -- true\n```", "show lab/qhca-lab up"),
        ("```sh\nls\nlab/qhca-scope ls\n```\n```sh\nlab/qhca-lab up\n```", r"md:3: no lab is up"),
        ("```sh\nlab/qhca-lab up\nlab/qhca-lab down\nlab/qhca-gdb kernel a\n```", "no lab is up"),
        ("```sh\nlab/qhca-lab fault list\n```", "no lab is up"),
        ("```sh\nlab/qhca-lab --name x pair true\n```", "no lab is up"),
        ("<!-- run: server & -->", "only tidy up"),
        ("<!-- run: until server; do :; done -->", "only tidy up"),
        ("<!-- run: sleep 1 -->", "only tidy up"),
        ("<!-- run: wait; rm -f x -->", "only tidy up"),
        ("<!-- run: rm -f x & -->", "only tidy up"),
        ("<!-- run: rm -f $(server) -->", "only tidy up"),
        ("<!-- run:\nlab/qhca-lab exec b -- true\n-->", "only tidy up"),
    ],
)
def test_a_broken_document_is_refused(text, word):
    with pytest.raises(DocumentError, match=word):
        parse(PATH, text)


def test_a_boot_may_take_longer():
    boot, shown, given = blocks("```sh\nlab/qhca-lab up\n```\n```sh\nls\n```\n"
                                "<!-- deadline: 90 s -->\n```sh\nlab/qhca-lab up\n```")
    assert (boot.deadline, shown.deadline, given.deadline) == (300, 120, 90)


@pytest.mark.parametrize("text", [
    "lab/qhca-lab up --help", "lab/qhca-lab fault check x.toml", "lab/qhca-lab rr-record made",
    "lab/qhca-lab record -o run --merge", "lab/qhca-lab up\nlab/qhca-lab exec a -- true",
])
def test_no_lab_is_up_and_none_is_needed(text):
    assert blocks(f"```sh\n{text}\n```")


@pytest.mark.parametrize("text, shares", [
    ("lab/qhca-lab up", True),
    ("lab/qhca-lab up  # as it is\nlab/qhca-lab exec a -- true", True),
    ("lab/qhca-lab up --iommu", False),
    ("lab/qhca-lab --name other up", False),
    ("lab/qhca-lab up\nlab/qhca-lab down", False),
    ("ls", False),
])
def test_who_shares_a_lab(text, shares):
    assert parse(PATH, f"```sh\n{text}\n```").shares_lab is shares


def test_a_reason_lets_a_block_be():
    document = parse(PATH, "<!-- not run: needs a terminal -->\n```\nmake shell\n```")
    assert not document.blocks
    assert document.not_run == ["docs/made-up.md:2: needs a terminal"]


# ---------------------------------------------------------------- comparing


@pytest.mark.parametrize(
    "expected, got, vary",
    [
        ("a\nb", "a\nb\n", False),
        ("off by 458754ns", "off by -23631ns", True),
        ("off by -23631ns, x=5", "off by 8ns, x=-2", True),
        ("a ... c", "a b b c", False),
        ("a\n...\nd", "a\nb\nc\nd", False),
        ("a\n...\nd", "a\nd", False),
        ("...", "", False),
        ("...\nb\n...", "b", False),
        ("a   b", "a b  ", False),
        ("qpn 17 at 0x7f00 in 1.5 s", "qpn   5 at 0x1 in 22.25 s", True),
        ("(*) [x] a+b", "(*) [x] a+b", False),
    ],
)
def test_output_that_fits(expected, got, vary):
    assert mismatch(expected, got, vary) is None


@pytest.mark.parametrize(
    "expected, got, vary",
    [
        ("a file-5", "a file--7", True),
        ("a\nb", "a", False),
        ("a", "a\nb", False),
        ("a ... c", "a b d", False),
        ("a\n...\nd", "a\nb", False),
        ("a", "", False),
        ("qpn 17", "qpn 18", False),
        ("qpn 17", "qpn x", True),
        ("qhca0", "qhca1", True),
        ("at 0x7f", "at 12", True),
        ("a.b", "axb", False),
    ],
)
def test_output_that_does_not_fit(expected, got, vary):
    assert mismatch(expected, got, vary)


# ---------------------------------------------------------------- executing


def test_one_shell_for_all_blocks(session):
    assert run(session, "```sh\nX=5; cd lab\n```\n```sh\necho $X; pwd\n```") == f"5\n{TOP}/lab\n"


def test_a_failed_command_is_found(session):
    with pytest.raises(BlockFailed, match=r"made-up.md:2: status 3: \( exit 3 \)"):
        run(session, "```sh\n(exit 3)\necho on\n```")


def test_a_command_that_is_not_there(session):
    with pytest.raises(BlockFailed, match="status 127"):
        run(session, "```sh\nno-such-command\n```")


def test_a_syntax_error_is_found(session):
    with pytest.raises(BlockFailed):
        run(session, "```sh\nif\n```")


def test_a_promised_failure(session):
    text = "<!-- exit status: 1 -->\n```sh\n{}\n```"
    run(session, text.format("false"))
    with pytest.raises(BlockFailed, match="all succeeded"):
        run(session, text.format("true"))
    with pytest.raises(BlockFailed, match="status 2"):
        run(session, text.format("(exit 2)"))


def test_wrong_output_is_found(session):
    with pytest.raises(BlockFailed, match="line 1 is not there: 'two'; instead: 'one'"):
        run(session, "```sh\necho one\n```\n```output\ntwo\n```")


def test_output_of_the_background_is_waited_for(session):
    run(session, "```sh\n(sleep 0.5; echo late) &\necho now\n```\n```output\nnow\nlate\n```")


def test_a_hanging_command_is_ended(session):
    with pytest.raises(BlockFailed, match="not done after 1 s"):
        run(session, "<!-- deadline: 1 s -->\n```sh\nsleep 60\n```")


def test_nobody_answers_questions(session):
    assert run(session, "```sh\nread x || echo end\n```") == "end\n"


def test_exit_is_found(session):
    with pytest.raises(BlockFailed, match="the shell ended"):
        run(session, "```sh\nexit 0\n```")
