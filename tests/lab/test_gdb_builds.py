# SPDX-License-Identifier: GPL-2.0-or-later
"""lab/qhca-gdb reports symbols of another build than the running one."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "lab"))

from qhca_lab import LabError, gdb, paths, process  # noqa: E402
from qhca_lab.elf import build_id  # noqa: E402
from qhca_lab.guest import build_ids, sections  # noqa: E402

PROGRAM = "#include <unistd.h>\nint main(void) { write(1, \"\\n\", 1); pause(); }\n"


def compile_to(target, byte, *words):
    """A program, or a variant by WORDS, whose build ID is 20 times BYTE."""
    target.parent.mkdir(parents=True, exist_ok=True)
    new = target.with_suffix(".new")
    subprocess.run(["gcc", "-x", "c", "-", "-o", new, f"-Wl,--build-id=0x{byte * 20}", *words],
                   input=PROGRAM, text=True, check=True)
    new.rename(target)      # as make does: the old one continues to exist in its process
    return target


def note_of(path):
    return build_id(path)[1].hex()


class FakeGuest:
    """A guest whose commands answer what `says` has."""

    name = "a"

    @property
    def driver(self):
        return paths.BUILD / "driver"

    def __init__(self, rc=0):
        self.rc = rc
        self.asked = []

    def run(self, command, timeout=0, check=True):
        self.asked.append(command)
        return SimpleNamespace(rc=self.rc, out="")


@pytest.fixture
def build(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    return tmp_path


def test_what_the_guest_tells():
    text = "section qhca .text 0xffffffffc0400000\nbuild qhca 0400aa\nbuild qhca_ib \nready\n"
    assert build_ids(text) == {"qhca": "0400aa"}
    assert sections(text) == {"qhca": {".text": "0xffffffffc0400000"}}


def test_a_driver_of_another_build(build, capsys):
    """Each module is compared with its file: the error says what to do."""
    ko = [compile_to(build / "driver" / f"{m}.ko", "a1", "-shared") for m in ("qhca", "qhca_ib")]
    loaded = {m.stem: note_of(m) for m in ko}
    assert loaded["qhca"].endswith("a1" * 20)
    gdb.check_modules(FakeGuest(), loaded, False)
    compile_to(ko[1], "b2", "-shared")
    with pytest.raises(LabError, match="driver in guest a.*qhca_ib.ko.*qhca-load.*--force"):
        gdb.check_modules(FakeGuest(), loaded, False)
    gdb.check_modules(FakeGuest(), loaded, True)
    assert "warning: the driver in guest a" in capsys.readouterr().err
    gdb.check_modules(FakeGuest(), {}, False)       # an older lab does not report it


def test_a_provider_of_another_build(build, tmp_path):
    gdb.check_provider(FakeGuest(0), False)
    with pytest.raises(LabError, match="libqhca in guest a.*qhca-provider installs.*--force"):
        gdb.check_provider(FakeGuest(17), False)
    # What the guest executes, here with our folders.
    ours, theirs = tmp_path / "provider", tmp_path / "libibverbs"
    theirs.mkdir()
    lib = compile_to(ours / "libqhca-rdmav34.so", "a1", "-shared")
    script = gdb.PROVIDER.replace("/qhca/build/provider", str(ours)).replace(
        "/usr/lib/x86_64-linux-gnu/libibverbs", str(theirs))

    def status():
        return subprocess.run(["bash", "-c", script]).returncode

    assert status() == 0                            # it has none: gdb will report that
    (theirs / lib.name).write_bytes(lib.read_bytes())
    assert status() == 0
    compile_to(lib, "b2", "-shared")
    assert status() == 17


def test_a_qemu_of_another_build(build, monkeypatch, capsys):
    """A process survives a rebuild of its program."""
    qemu = build / "bin" / "qemu"
    real = compile_to(build / "bin" / "qemu.real", "a1")
    monkeypatch.setattr(paths, "QEMU", qemu)
    with subprocess.Popen([real], stdout=subprocess.PIPE) as child:
        try:
            child.stdout.read(1)                    # it is there
            guest = SimpleNamespace(name="a", state={"process": process.identity(child.pid)})
            assert f"attach {child.pid}" in gdb.engine(guest, "", False)
            compile_to(real, "a1")                  # the same again
            gdb.engine(guest, "", False)
            compile_to(real, "b2")
            with pytest.raises(LabError, match="QEMU was rebuilt.*up --replace.*--force"):
                gdb.engine(guest, "", False)
            assert f"attach {child.pid}" in gdb.engine(guest, "", True)
            assert "warning: QEMU was rebuilt" in capsys.readouterr().err
            monkeypatch.setattr(paths, "QEMU", build / "bin" / "other")
            with pytest.raises(LabError, match="another QEMU"):
                gdb.engine(guest, "", False)
        finally:
            child.kill()
