# SPDX-License-Identifier: GPL-2.0-or-later
"""lab/gate/run-tests: parallel targets, verdicts, counts, and cleanup when it is stopped."""

import importlib.machinery
import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]


@pytest.fixture
def tests(tmp_path, monkeypatch):
    """The program as a module, with separate logs."""
    loader = importlib.machinery.SourceFileLoader("run_tests", str(TOP / "lab" / "gate" / "run-tests"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("run_tests", loader))
    sys.modules["run_tests"] = module
    loader.exec_module(module)
    monkeypatch.setattr(module, "LOGS", tmp_path / "log")
    yield module
    del sys.modules["run_tests"]


@pytest.fixture
def make(tmp_path):
    """A make whose targets are functions of a shell script."""
    def made(script):
        path = tmp_path / "make"
        path.write_text(f"#!/bin/sh\nd={tmp_path}\n{script}\n\"$2\"\n")
        path.chmod(0o755)
        return str(path)
    return made


def test_all_run_even_when_one_fails(tests, make, capsys):
    runner = tests.Runner(["good", "bad", "after"], make(
        'good() { echo fine; }; bad() { echo "what is wrong"; exit 3; }; after() { :; }'))
    assert not runner.run(2)
    assert [t.status for t in runner.targets] == [0, 3, 0]
    shown = capsys.readouterr().out
    assert "what is wrong" in shown and "fine" not in shown
    assert tests.summary(runner.targets, 1.0).splitlines()[-1] == "2 passed, 1 failed, 0 skipped"


def test_cpu_time_is_told(tests, make):
    runner = tests.Runner(["work"], make(
        "work() { sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; }"))
    assert runner.run(1)
    assert runner.targets[0].cpu > 0
    assert " s CPU" in runner.targets[0].line()


def test_two_run_side_by_side(tests, make):
    """Each waits for the other: one after the other they would never end."""
    meet = 'touch "$d/$1"; until [ -e "$d/$2" ]; do sleep 0.02; done'
    runner = tests.Runner(["left", "right"], make(
        f"meet() {{ {meet}; }}; left() {{ meet l r; }}; right() {{ meet r l; }}"))
    assert runner.run(2)


def test_whoever_is_free_takes_the_next(tests, make):
    """The long one ends when all others have run in parallel."""
    runner = tests.Runner(["long", "one", "two", "three"], make(
        'long() { until [ -e "$d/three" ]; do sleep 0.02; done; }\n'
        'one() { touch "$d/one"; }; two() { [ -e "$d/one" ] && touch "$d/two"; }\n'
        'three() { [ -e "$d/two" ] && touch "$d/three"; }'))
    assert runner.run(2)


def test_a_third_needs_memory(tests, monkeypatch):
    monkeypatch.setattr(tests.os, "sched_getaffinity", lambda _: {0, 1})
    for free, number in ((tests.ROOM, 3), (tests.ROOM - 1, 2)):
        monkeypatch.setattr(tests.Path, "read_text",
                            lambda _, free=free: f"MemTotal: 1 kB\nMemAvailable:  {free << 10} kB\n")
        assert tests.usual_number() == number
    monkeypatch.setattr(tests.os, "sched_getaffinity", lambda _: {0})
    assert tests.usual_number() == 1


def test_some_run_alone(tests, make):
    """Not before all others have ended, and one after the other."""
    runner = tests.Runner(["left", "right"], make(
        'left() { sleep 0.1; touch "$d/left"; }; right() { touch "$d/right"; }\n'
        'first() { [ -e "$d/left" ] && [ -e "$d/right" ] && sleep 0.1 && touch "$d/first"; }\n'
        'second() { [ -e "$d/first" ]; }'), alone=["first", "second"])
    assert runner.run(2)
    assert [t.name for t in runner.targets] == ["left", "right", "first", "second"]


def test_early_ones_run_beside_the_build(tests, make):
    """Each waits for the other; what needs the build waits for it."""
    meet = 'touch "$d/$1"; until [ -e "$d/$2" ]; do sleep 0.02; done'
    runner = tests.Runner(["late", "later"], make(
        f"meet() {{ {meet}; }}; build() {{ meet b e && touch $d/built; }}; early() {{ meet e b; }}\n"
        'late() { [ -e "$d/built" ] && touch "$d/late"; }; later() { meet later late; }'),
        build="build", early=["early"])
    assert runner.run(2)
    assert [t.name for t in runner.targets] == ["early", "late", "later"]


def test_an_early_one_may_outlast_the_build(tests, make):
    """Its lane then takes what is left: the late ones wait for each other and for it."""
    meet = 'touch "$d/$1"; until [ -e "$d/$2" ]; do sleep 0.02; done'
    runner = tests.Runner(["one", "two", "three"], make(
        f"meet() {{ {meet}; }}; build() {{ :; }}; early() {{ meet e one; }}\n"
        "one() { meet one two; }; two() { meet two one; }; three() { :; }"),
        build="build", early=["early"])
    assert runner.run(2)


def test_nothing_runs_without_the_build(tests, make, capsys):
    """And what runs beside it is ended."""
    runner = tests.Runner(["late"], make(
        'build() { until [ -e "$d/e" ]; do sleep 0.02; done; exit 1; }\n'
        'early() { touch "$d/e"; exec sleep 600; }; late() { touch "$d/late"; }'),
        build="build", early=["early"], alone=["alone"])
    assert not runner.run(2)
    assert [t.verdict for t in runner.targets] == ["stopped", "not run", "not run"]
    said = capsys.readouterr().out
    assert "make build failed" in said and "the end of" not in said


def test_one_at_a_time_waits_for_the_build(tests, make):
    runner = tests.Runner(["late"], make(
        'build() { [ ! -e "$d/early" ] && sleep 0.1 && touch "$d/built"; }\n'
        'early() { [ -e "$d/built" ] && touch "$d/early"; }; late() { [ -e "$d/early" ]; }'),
        build="build", early=["early"])
    assert runner.run(1)


def test_a_resumed_run_leaves_out_what_has_passed(tests, make, monkeypatch):
    monkeypatch.setattr(tests, "sources", lambda: "one")
    first = 'good() { echo "7 passed, 0 failed"; }; bad() { exit 1; }; last() { exit 1; }'
    assert not tests.Runner(["good", "bad"], make(first), alone=["last"]).run(2)
    second = 'good() { exit 1; }; bad() { :; }; last() { touch "$d/last"; }'
    runner = tests.Runner(["good", "bad"], make(second), alone=["last"], resume=True)
    assert runner.run(2)
    assert runner.targets[0].counts == {"passed": 7, "failed": 0, "skipped": 0}
    assert tests.summary(runner.targets, 1.0).splitlines()[-1] == "9 passed, 0 failed, 0 skipped"
    # Not without being asked to, and not what has failed since.
    assert not tests.Runner(["good"], make(second)).run(2)
    runner = tests.Runner(["good", "bad"], make(second), resume=True)
    assert not runner.run(2) and [t.status for t in runner.targets] == [1, 0]
    # Not what passed on other sources, nor while they changed.
    assert tests.Runner(["good"], make(first)).run(2)
    monkeypatch.setattr(tests, "sources", lambda: "two")
    assert not tests.Runner(["good"], make(second), resume=True).run(2)
    hashes = iter(["three", "four", "three"])
    monkeypatch.setattr(tests, "sources", lambda: next(hashes))
    assert tests.Runner(["good"], make(first)).run(2)
    assert not tests.Runner(["good"], make(second), resume=True).run(2)


def test_sources_differ(tests, monkeypatch, tmp_path):
    """By a commit, a change, a new file, and by what is run; and without git always."""
    def git(*args):
        subprocess.run(["git", "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=b", *args],
                       check=True, capture_output=True)

    monkeypatch.setattr(tests, "TOP", tmp_path)
    assert tests.sources() != tests.sources()
    git("init")
    (tmp_path / "file").write_text("a")
    git("add", "-A")
    git("commit", "-m", "a")
    seen = [tests.sources()]
    assert tests.sources() == seen[0]
    (tmp_path / "file").write_text("b")
    seen.append(tests.sources())
    (tmp_path / "other").write_text("c")
    seen.append(tests.sources())
    (tmp_path / "other").write_text("d")
    seen.append(tests.sources())
    status = subprocess.run(["git", "-C", tmp_path, "status", "--porcelain"], check=True,
                            capture_output=True, text=True).stdout
    assert status == " M file\n?? other\n"
    for name in ("ARGS", "QHCA_LINK"):
        monkeypatch.setenv(name, "-k one")
        seen.append(tests.sources())
    assert len(set(seen)) == len(seen)
    monkeypatch.setenv("QHCA_JOBS", "7")
    assert tests.sources() == seen[-1]


def test_one_after_the_other(tests, make):
    one = 'mkdir "$d/only" || exit 1; sleep 0.05; rmdir "$d/only"'
    runner = tests.Runner(["left", "right"],
                          make(f"left() {{ {one}; }}; right() {{ {one}; }}"))
    assert runner.run(1)


REPORT = """<testsuites><testsuite tests="5" failures="1" errors="1" skipped="1">
<testcase classname="guest.test_a" name="test_slow" time="12.5"/></testsuite></testsuites>"""


def test_counts(tests, make):
    """From pytest's report; from the log of who says it; else a target is one."""
    runner = tests.Runner(["suite", "talk", "plain"], make(
        f"suite() {{ cat >\"$QHCA_TEST_REPORT\" <<'END'\n{REPORT}\nEND\nexit 1; }}\n"
        'talk() { echo "1 passed, 0 failed"; echo "all: 40 passed, 0 failed, 3 skipped"; }\n'
        "plain() { :; }"))
    assert not runner.run(2)
    suite, talk, plain = runner.targets
    assert suite.counts == {"passed": 2, "failed": 2, "skipped": 1}
    assert talk.counts == {"passed": 40, "failed": 0, "skipped": 3}
    text = tests.summary(runner.targets, 1.0)
    assert "12.5 s  test_a::test_slow" in text
    assert text.splitlines()[-1] == "43 passed, 2 failed, 4 skipped"


def test_a_target_that_fails_without_a_failed_test(tests, make):
    """It counts: a part of it did not run."""
    runner = tests.Runner(["talk"], make('talk() { echo "9 passed, 0 failed"; exit 1; }'))
    assert not runner.run(2)
    assert tests.summary(runner.targets, 1.0).splitlines()[-1] == "9 passed, 1 failed, 0 skipped"


def test_an_old_report_is_none(tests, make, tmp_path):
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "make-died.xml").write_text(REPORT)
    runner = tests.Runner(["died"], make("died() { exit 1; }"))
    assert not runner.run(2)
    assert runner.targets[0].counts == {}


def test_ctrl_c_ends_what_runs(tmp_path):
    """The target's children, too."""
    make = tmp_path / "make"
    # two of them run at once
    make.write_text(f"#!/bin/sh\nsleep 600 & echo $! >{tmp_path}/pid.$$\n"
                    f"mv {tmp_path}/pid.$$ {tmp_path}/pid\nwait\n")
    make.chmod(0o755)
    env = dict(os.environ, PATH=f"{tmp_path}:{os.environ['PATH']}", QHCA_BUILD=str(tmp_path))
    # A shell lets what it starts in the background ignore SIGINT.
    runner = subprocess.Popen([str(TOP / "lab" / "gate" / "run-tests"), "never", "never-too"], env=env,
                              stdout=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 60
    while not (tmp_path / "pid").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    child = int((tmp_path / "pid").read_text())
    runner.send_signal(signal.SIGTERM)
    assert runner.wait(60) == 128 + signal.SIGTERM
    while Path(f"/proc/{child}").exists() and "Z" not in state(child):
        assert time.monotonic() < deadline, "it was left behind"
        time.sleep(0.02)


def state(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"


SHARED = """
import os, time
from pathlib import Path
import pytest

@pytest.fixture(scope="module")
def module():
    yield
    print("module ends")

@pytest.mark.parametrize("n", range({count}))
def test(module, n):
    ready = Path(os.environ["READY"])
    (ready / os.environ["WHO"]).touch()
    # the first waits for the other, so that both take part
    while len(list(ready.iterdir())) < 2:
        time.sleep(0.01)
"""


def test_shared_tests_run_once(tmp_path):
    """Two runs with --shared run each test once, between them, and begin at two ends."""
    ready, claimed, folder = tmp_path / "ready", tmp_path / "claimed", tmp_path / "tests"
    for path in (ready, claimed, folder):
        path.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "conftest.py").write_text((TOP / "tests/conftest.py").read_text())
    for name, count in (("a", 9), ("b", 40), ("c", 9)):
        (folder / f"test_{name}.py").write_text(SHARED.format(count=count))
    runs = [
        subprocess.Popen(
            [sys.executable, "-m", "pytest", "-v", "--shared", which],
            env=dict(os.environ, QHCA_TESTS_CLAIMED=str(claimed), READY=str(ready), WHO=which,
                     QHCA_TEST_REPORT=""),
            stdout=subprocess.PIPE, text=True, cwd=folder)
        for which in ("first", "last")
    ]
    ran = []
    for run in runs:
        said = run.communicate(timeout=300)[0]
        assert run.returncode == 0, said
        ran.append([line.split()[0] for line in said.splitlines() if " PASSED" in line])
    assert ran[0][0] == "test_a.py::test[0]" and ran[1][0] == "test_c.py::test[0]"
    assert len(ran[0] + ran[1]) == len(set(ran[0] + ran[1])) == 58
