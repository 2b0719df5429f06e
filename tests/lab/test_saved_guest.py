# SPDX-License-Identifier: GPL-2.0-or-later
"""Saved guests: when one is used, when it is stale, what a failure leaves behind."""

import contextlib
import errno
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "lab"))

from qhca_lab import LabError, Options, machine, saved_guest  # noqa: E402


class Monitor:
    """QMP of a guest that is saved at once, or refuses to be."""

    def __init__(self, fails):
        self.fails = fails
        self.said = []

    def command(self, name, arguments=None):
        self.said.append(name)
        if name == "migrate" and not self.fails:
            Path(arguments["uri"].removeprefix("file:")).write_bytes(b"state")
        if name == "query-migrate":
            return {"status": "failed" if self.fails else "completed", "error-desc": "no room"}
        return {}

    def quit(self):
        self.said.append("quit")


class Boots:
    """Replaces Lab: counts how often a guest is booted to be saved."""

    def __init__(self):
        self.count = 0
        self.fails = False
        self.monitor = None

    def __call__(self, options, state, disk, memory_fd):
        self.count += 1
        os.pwrite(memory_fd, b"booted", 4096)
        assert disk.parent.name.endswith(".new"), "a half-made one must not be found"
        self.monitor = Monitor(self.fails)
        state["process"] = {"pid": 0, "start": None}
        return SimpleNamespace(
            state=state, run=lambda *_: None,
            qmp=lambda *_: contextlib.nullcontext(self.monitor),
        )  # fmt: skip


@pytest.fixture
def boots(tmp_path, monkeypatch):
    monkeypatch.setattr(saved_guest, "HOME", tmp_path / "saved")
    monkeypatch.setattr(saved_guest, "_qemu_build", lambda: "aa")
    monkeypatch.setattr(saved_guest.qcow2, "create", lambda path, _backing: path.touch())
    monkeypatch.setenv("QHCA_ACCEL", "tcg")
    return Boots()


def use(boots, **options):
    """The folder of the saved guest that a lab with OPTIONS starts from."""
    with saved_guest.guest_for(Options(**options), boots, lambda _: None) as base:
        return base.dir if base else None


def test_booted_once(boots):
    first = use(boots)
    assert use(boots) == first and boots.count == 1
    assert boots.monitor.said[-1] == "quit"
    assert sorted(p.name for p in first.iterdir()) == ["disk.qcow2", "memory", "state"]
    assert (first / "memory").stat().st_size == 1 << 30


def test_each_guest_gets_a_copy(boots):
    """Of the memory that was saved, before QEMU loads the rest; then the files are closed."""
    use(boots)
    guests = [SimpleNamespace(name=n, state=saved_guest._blank(), asked=[]) for n in "ab"]
    before = set(os.listdir("/proc/self/fd"))
    with saved_guest.guest_for(Options(), boots, lambda _: None) as base:
        for guest in guests:
            monitor = guest.monitor = Monitor(False)
            guest.qmp = lambda *_, m=monitor: contextlib.nullcontext(m)
            guest.resume = guest.asked.append
            files = base.files(guest)
            assert files["saved"] == base.dir / "disk.qcow2"
            guest.fd = os.dup(files["memory_fd"])
            # What QEMU writes before it loads a guest is not the guest's.
            os.pwrite(guest.fd, b"firmware", 0)
        base.load(guests)
    for guest in guests:
        assert os.pread(guest.fd, 6, 4096) == b"booted" and os.pread(guest.fd, 8, 0) == bytes(8)
        os.close(guest.fd)
        said = guest.monitor.said
        assert said.index("migrate-set-capabilities") < said.index("migrate-incoming")
        # A later migration of the guest must include its memory.
        assert said.count("migrate-set-capabilities") == 2
        assert said[-1] == "cont" and guest.asked[0]["settings"]["nic"] == "none"
    assert set(os.listdir("/proc/self/fd")) == before


def test_what_a_guest_gets_later_makes_no_difference(boots, tmp_path):
    first = use(boots)
    for options in ({"mtu": 1500}, {"load": ["qhca.x=1"]}, {"share": str(tmp_path)},
                    {"loss": 1.0, "seed": 5}, {"link": "switch"}, {"tied": True}):
        assert use(boots, **options) == first, options
    assert boots.count == 1


def test_stale(boots, monkeypatch):
    """A change of any input makes another one."""
    found = [use(boots), use(boots, mem="2G"), use(boots, smp=1), use(boots, iommu=True),
             use(boots, append=["swiotlb=force"])]
    monkeypatch.setattr(saved_guest, "_qemu_build", lambda: "bb")
    found.append(use(boots))
    monkeypatch.setattr(saved_guest, "_recipe", lambda: b"another agent")
    found.append(use(boots))
    monkeypatch.setattr(machine, "TCG_CPU", "qemu64")
    found.append(use(boots))
    assert len(set(found)) == len(found) == boots.count
    assert saved_guest._key(Options(accel="kvm")) != saved_guest._key(Options())


def test_recipe_has_the_guests_own_programs():
    for name in ("agent.py", "boot.py", "driver.py", "guestenv.py", "memory.py"):
        assert name.encode() in saved_guest._recipe()


def test_labs_that_boot(boots, monkeypatch):
    for options in ({"cold": True}, {"qemu": ["-s"]}, {"binary": "/bin/true"},
                    {"mem": "1G,slots=2,maxmem=2G"}):
        assert use(boots, **options) is None, options
    monkeypatch.setenv("QHCA_ACCEL", "kvm")
    assert use(boots) is None and boots.count == 0


def test_one_that_cannot_be_saved_leaves_nothing(boots):
    boots.fails = True
    with pytest.raises(LabError, match="could not be saved: no room"):
        use(boots)
    assert [p.name for p in saved_guest.HOME.iterdir()] == [".lock"]
    boots.fails = False
    assert use(boots).exists()


def test_a_full_disk_is_told(boots, monkeypatch):
    def write_to(_memory, path):
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(saved_guest.Memory, "write_to", write_to)
    with pytest.raises(LabError, match="could not be saved: .*No space left"):
        use(boots)
    assert [p.name for p in saved_guest.HOME.iterdir()] == [".lock"]


def test_a_saved_guest_that_was_removed(boots):
    guest = SimpleNamespace(name="a", state=saved_guest._blank(),
                            qmp=lambda *_: contextlib.nullcontext(Monitor(False)))
    with saved_guest.guest_for(Options(), boots, lambda _: None) as base:
        base.files(guest)
        (base.dir / "memory").unlink()
        with pytest.raises(LabError, match="guest a could not be loaded: .*memory"):
            base.load([guest])


def test_old_ones_go(boots):
    """The least recently used ones, and leftovers of a crash; never the newest."""
    made = [use(boots, smp=n) for n in range(1, saved_guest.KEEP + 1)]
    for age, path in enumerate(made):
        os.utime(path, (1e9 - age, 1e9 - age))
    (saved_guest.HOME / "crashed.new").mkdir()
    new = use(boots, mem="3G")
    left = {p for p in saved_guest.HOME.iterdir() if p.is_dir()}
    assert left == {new, *made[: saved_guest.KEEP - 1]}


def test_build_id_of_a_program(tmp_path, monkeypatch):
    """Read from the program itself; one without is refused."""
    monkeypatch.setattr(saved_guest, "QEMU", Path(os.path.realpath("/bin/sh")))
    assert len(saved_guest._qemu_build()) > 16
    monkeypatch.setattr(saved_guest, "QEMU", tmp_path / "qemu")
    (tmp_path / "qemu").write_bytes(b"\x7fELF\x02\x01" + bytes(122))
    with pytest.raises(LabError, match="no build ID"):
        saved_guest._qemu_build()
