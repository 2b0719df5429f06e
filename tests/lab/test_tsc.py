# SPDX-License-Identifier: GPL-2.0-or-later
"""The frequency of the time stamp counter: measured once, and told to guests under TCG."""

import os
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "lab"))

from qhca_lab import Options, machine, per_boot, tsc  # noqa: E402

GUEST = {"name": "a", "number": 1, "nic": "none", "mac": machine.mac_of(1), "ip": "", "ip6": ""}
REAL = tsc.measure


@pytest.fixture(autouse=True)
def measured(tmp_path, monkeypatch):
    """A host that has not measured yet; its results, last first."""
    found = [3000, 2000, 1000]
    monkeypatch.setattr(tsc, "KEPT", tmp_path / "build/tsc.json")
    monkeypatch.setattr(per_boot, "BOOT_ID", tmp_path / "boot")
    monkeypatch.setattr(tsc, "measure", found.pop)
    monkeypatch.setattr(tsc.platform, "machine", lambda: "x86_64")
    per_boot.BOOT_ID.write_text("one\n")
    return found


def test_once_per_boot(measured):
    assert [tsc.khz(), tsc.khz()] == [1000, 1000]
    per_boot.BOOT_ID.write_text("two\n")
    assert [tsc.khz(), tsc.khz()] == [2000, 2000]
    assert measured == [3000]


@pytest.mark.parametrize("text", ["", "[]", '{"boot": "one"}', '{"boot": "one", "khz": "x"}'])
def test_what_was_kept_is_damaged(text):
    tsc.KEPT.parent.mkdir()
    tsc.KEPT.write_text(text)
    assert tsc.khz() == 1000
    assert [p.name for p in tsc.KEPT.parent.iterdir()] == ["tsc.json"]


def test_another_architecture(measured, monkeypatch):
    monkeypatch.setattr(tsc.platform, "machine", lambda: "aarch64")
    assert tsc.khz() is None and len(measured) == 3


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="needs a time stamp counter")
def test_measured():
    """Without the counter of this host being known: it is a constant in whole MHz."""
    first, second = REAL(), REAL()
    assert 100e3 < first < 10e6 and abs(first - second) <= tsc.ROUND
    assert first % tsc.ROUND == 0


@pytest.mark.parametrize("accel, qemu, told", [
    ("tcg", [], True), ("tcg,thread=single", [], True), ("kvm", [], False),
    # There the counter counts instructions.
    ("tcg", ["-icount", "shift=3"], False), ("tcg", ["--icount", "auto"], False),
])
def test_who_is_told(accel, qemu, told):
    words = machine.kernel_arguments(GUEST, Options(accel=accel, qemu=qemu)).split()
    assert ("tsc_early_khz=1000" in words) is told
