# SPDX-License-Identifier: GPL-2.0-or-later
"""What the kernel's selftests print, as results and as a document."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "lab"))

from qhca_lab.selftests import place, programs, table  # noqa: E402
from qhca_lab.selftests.ktap import FAIL, PASS, SKIP, XFAIL, Case, parse  # noqa: E402

KTAP = """\
KTAP version 1
1..5
ok 1 stats.check_pause # XFAIL pause not supported by the device
ok 2 stats.by_ifindex
# Exception| Traceback (most recent call last):
# Exception|   File "/x/stats.py", line 3, in down
# Exception|     ip("link set down")
# Exception| net.lib.py.utils.CmdExitFailure: Command failed: ip link set down
# Exception| STDOUT: b''
# Exception| STDERR: b'netlink error: Operation not supported\\n'
not ok 3 stats.down
# Check| At /x/stats.py, line 9, in more:
# Check|     ksft_eq(1, 2)
# Check failed 1 != 2 too few
not ok 4 stats.more
ok 5 stats.queues # SKIP already at 1
# Totals: pass:1 fail:2 xfail:1 xpass:0 skip:1 error:0
"""

SHELL = """\
TEST: force speed 1000 on both ends                                 [ OK ]
TEST: rx-pkts64to64 on eth2                                         [FAIL]
\tbucket is empty
TEST: eth2 does not support tx histogram counters                   [XFAIL]
"""


def test_ktap():
    assert parse("drivers/net/stats.py", KTAP, 1) == [
        Case("check_pause", XFAIL, "pause not supported by the device"),
        Case("by_ifindex", PASS),
        Case("down", FAIL, "netlink error: Operation not supported (ip link set down)"),
        Case("more", FAIL, "Check failed 1 != 2 too few"),
        Case("queues", SKIP, "already at 1"),
    ]


LINUX_7 = """\
KTAP version 1
1..2
# Exception| Traceback (most recent call last):
# Exception|     raise CmdExitFailure("Command failed", self)
# Exception| net.lib.py.utils.CmdExitFailure: Command failed
# Exception| CMD: ip link set dev eth5 xdp obj x.bpf.o sec xdp
# Exception|   EXIT: 255
# Exception|   STDERR: Error opening object x.bpf.o: No such file or directory
# Exception|           Cannot initialize ELF context!
# Exception|
not ok 1 hds.set_xdp
# Exception| net.lib.py.utils.CmdExitFailure: Command failed
# Exception| CMD: false
# Exception|   EXIT: 1
not ok 2 hds.more
"""


def test_command_that_failed_as_linux_7_tells_it():
    assert parse("drivers/net/hds.py", LINUX_7, 1) == [
        Case("set_xdp", FAIL, "Cannot initialize ELF context! "
             "(ip link set dev eth5 xdp obj x.bpf.o sec xdp)"),
        Case("more", FAIL, "net.lib.py.utils.CmdExitFailure: Command failed (false)"),
    ]


def test_lines_of_shell_tests():
    assert parse("drivers/net/hw/ethtool_rmon.sh", SHELL, 1) == [
        Case("force speed 1000 on both ends", PASS),
        Case("rx-pkts64to64 on eth2", FAIL, "bucket is empty"),
        Case("eth2 does not support tx histogram counters", XFAIL),
    ]
    said = "TEST: SKIP: dev eth1 does not support loopback feature     [ OK ]\n"
    assert parse("drivers/net/hw/loopback.sh", said, 4) == [
        Case("", SKIP, "dev eth1 does not support loopback feature")]


@pytest.mark.parametrize("output, status, case", [
    ("", 0, Case("", PASS)),
    ("SKIP: jq not installed\n", 4, Case("", SKIP, "jq not installed")),
    ("net.lib.py.ksft.KsftSkipEx: LOCAL_PREFIX_V6 required\n", 1,
     Case("", SKIP, "LOCAL_PREFIX_V6 required")),
    ("x.YnlException: Family 'psp' not supported by the kernel\n", 1,
     Case("", SKIP, "Family 'psp' not supported by the kernel")),
    ("Cannot open\n", 1, Case("", FAIL, "exit status 1: Cannot open")),
    ("half a\n", None, Case("", FAIL, "did not end; its last words: half a")),
    ("1..3\n", 1, Case("", FAIL, "3 cases were not run: 1..3")),
])
def test_one_that_tells_no_cases(output, status, case):
    assert parse("drivers/net/hw/x.sh", output, status) == [case]


def test_failing_status_without_a_failed_case():
    """A test that reports a failure in any way does not pass."""
    cases = parse("drivers/net/ping.py", "1..1\nok 1 ping.v4\n", 1)
    assert cases[0].verdict == PASS and cases[1].verdict == FAIL
    cases = parse("drivers/net/ping.py", "1..2\nok 1 ping.v4\n", 0)
    assert cases[1] == Case("", FAIL, "1 cases were not run: ok 1 ping.v4")


def test_tests_of_a_makefile(tmp_path):
    """Every test in a makefile of the kernel is run."""
    for folder, text in (("drivers/net", "TEST_PROGS := \\\n\ta.sh \\\n\tb.py \\\n# end\n"),
                         ("drivers/net/hw", "TEST_PROGS = c.py\nTEST_PROGS += d.py\n"
                          "TEST_PROGS_EXTENDED := e.py\n")):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "Makefile").write_text(text)
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "tcp_mmap.c").write_text("")
    assert [p.name for p in programs.programs(tmp_path)] == [
        "drivers/net/a.sh", "drivers/net/b.py", "drivers/net/hw/c.py", "drivers/net/hw/d.py",
        "net/tcp_mmap"]


def test_package_that_a_test_needs(tmp_path):
    """Without it the test is skipped, and says what it needs."""
    (tmp_path / "drivers/net/hw").mkdir(parents=True)
    (tmp_path / "drivers/net/Makefile").write_text("TEST_PROGS := netpoll_basic.py\n")
    (tmp_path / "drivers/net/hw/Makefile").write_text("")
    asked = []

    def run(line, check):
        asked.append(line)
        return SimpleNamespace(rc=1)

    listed, = programs.programs(tmp_path)
    cases, _ = listed.run(SimpleNamespace(a=SimpleNamespace(run=run)))
    assert [case.verdict for case in cases] == [SKIP] and "needs bpftrace" in cases[0].reason
    assert asked == ["command -v bpftrace"]


@pytest.mark.parametrize("test, name, reason, verdict", [
    ("rss_ctx.py", "test_hitless_key_update", "Check failed 0.428111 >= 0.2", XFAIL),
    ("rss_ctx.py", "test_hitless_key_update", "Check failed 2.1 >= 0.2", FAIL),
    ("rss_ctx.py", "test_hitless_key_update", "Check failed 1 != 0", FAIL),
    ("rss_ctx.py", "test_rss_resize", "Check failed 0.428111 >= 0.2", FAIL),
    ("csum.py", "test_hitless_key_update", "Check failed 0.428111 >= 0.2", FAIL),
])
def test_time_limits_for_real_machines(test, name, reason, verdict):
    """An emulated CPU may take ten times as long, and only where a limit is known."""
    case = programs.on_slow(f"drivers/net/hw/{test}", Case(name, FAIL, reason))
    assert case.verdict == verdict
    if verdict == XFAIL:
        assert case.reason == "0.43 s on an emulated CPU, limit 0.2 s"
    passed = Case(name, PASS)
    assert programs.on_slow(f"drivers/net/hw/{test}", passed) == passed


def test_document(tmp_path, monkeypatch):
    """Both adapters side by side; a later run of some tests keeps the others."""
    monkeypatch.setattr(table, "BUILD", tmp_path)
    (tmp_path / "selftests").mkdir()
    release = "6.12.1+deb13-amd64"
    table.save("qhca", release, {"x.py": [Case("one", FAIL, "a | b")], "y.sh": [Case("", PASS)]})
    table.save("qhca", release, {"x.py": [Case("one", PASS), Case("two", SKIP, "no a|b")]})
    table.save("virtio-net", release, {"x.py": [Case("one", FAIL, "<x>")]})
    table.save("qhca", "6.9.1-amd64", {"z.py": [Case("", PASS)]})
    text = table.document()
    assert text.index("## Linux 6.9.1") < text.index("## Linux 6.12.1")
    assert "qhca: 2 pass, 1 skip; virtio-net: 1 fail." in text
    assert "| `x.py` | one | pass | **fail**: &lt;x> |\n|  | two | skip: no a\\|b | – |" in text
    assert "| `y.sh` |  | pass | – |" in text


def test_document_keeps_what_was_not_run_again(tmp_path, monkeypatch):
    """A new clone has no results of earlier runs: their rows stay as they are in the document."""
    monkeypatch.setattr(table, "BUILD", tmp_path)
    (tmp_path / "selftests").mkdir()
    assert table.document(table.document()) == table.HEAD
    release = "6.12.1+deb13-amd64"
    table.save("qhca", release, {"x.py": [Case("one", FAIL, "a | b"), Case("two", PASS)],
                                 "y.sh": [Case("", SKIP, "not here")]})
    table.save("virtio-net", release, {"x.py": [Case("two", FAIL, "it"), Case("three", XFAIL)]})
    table.save("qhca", "6.9.1-amd64", {"z.py": [Case("", PASS)]})
    before = table.document()
    for path in (tmp_path / "selftests").iterdir():
        path.unlink()
    assert table.document(before) == before
    table.save("qhca", release, {"x.py": [Case("one", PASS)]})
    table.save("qhca", "7.1.2-amd64", {"x.py": [Case("one", PASS)]})
    after = table.document(before)
    assert "qhca: 1 pass, 1 skip; virtio-net: 1 fail, 1 xfail." in after
    assert "| `x.py` | one | pass | – |\n|  | two | – | **fail**: it |\n|  | three | – | xfail |" \
        in after
    assert "| `y.sh` |  | skip: not here | – |" in after
    order = [after.index(f"## Linux {v}") for v in ("6.9.1", "6.12.1", "7.1.2")]
    assert order == sorted(order)


def test_document_of_the_project_is_understood(tmp_path, monkeypatch):
    """The tables in docs/ survive if nothing was run."""
    monkeypatch.setattr(table, "BUILD", tmp_path)
    text = (TOP / "docs" / "reference" / "selftests.md").read_text()
    assert table.document(text) == text


def test_document_says_why(tmp_path, monkeypatch):
    """A failure that is understood has its reason, for the adapter that it is about."""
    monkeypatch.setattr(table, "BUILD", tmp_path)
    monkeypatch.setattr(table, "UNDERSTOOD", {"x.py": "it cannot"})
    (tmp_path / "selftests").mkdir()
    for nic in ("qhca", "virtio-net"):
        table.save(nic, "6.12.1-amd64", {"x.py": [Case("one", FAIL, "1 != 0"), Case("two", PASS)]})
    assert "| one | **fail**: 1 != 0 (it cannot) | **fail**: 1 != 0 |\n|  | two | pass | pass |" \
        in table.document()


@pytest.mark.parametrize("nic, boots", [
    ("qhca", ["gro-hold=70000", "gro-hold=1000000", ""]), ("virtio-net", []),
])
def test_adapter_of_its_own(monkeypatch, nic, boots):
    """The lab reboots before a test that needs other properties, and after the last."""
    found = []
    where = place.Place(nic, print)
    monkeypatch.setattr(where, "boot", lambda: found.append(where.properties))
    for test in ("net/ping.py", "net/gro.py", "net/hw/gro_hw.py", "net/hw/irq.py"):
        where.prepare(f"drivers/{test}")
    assert found == boots


class FakeJob:
    stdout = ""

    def join(self, _limit):
        return True

    def result(self):
        return SimpleNamespace(out="ok 1 x.y\n", rc=0)

    def kill(self):
        pass


@pytest.mark.parametrize("text, ends, remote", [
    ("NUM_NETIFS=2\n", "eth1 eth2", "lab"),
    (': "${DRIVER_TEST_CONFORMANT:=yes}"\nNUM_NETIFS=2\n', "", "ssh"),
])
def test_ends_of_a_cable(tmp_path, text, ends, remote):
    """Shell tests get two ports of one guest, or if they can the two guests."""
    (tmp_path / "x.sh").write_text(text)
    started = []

    def start(line, env):
        started.append((line.partition("exec ./x.sh")[2].strip(), env["REMOTE_TYPE"]))
        return FakeJob()

    place = SimpleNamespace(tests=tmp_path, ports=["eth1", "eth2", "eth3"],
                            env={"REMOTE_TYPE": "lab"}, a=SimpleNamespace(start=start))
    cases, _ = programs._script("./x.sh")(place)
    assert started == [(ends, remote)] and cases == [Case("y", PASS)]
