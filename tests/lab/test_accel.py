# SPDX-License-Identifier: GPL-2.0-or-later
"""KVM or TCG: a trial guest decides, and runs only once."""

import json
import os
import sys
import threading
import types
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "lab"))

from qhca_lab import Options, accel, machine, per_boot  # noqa: E402

# A QEMU that finds its console, counts its runs, and then executes the test's script.
FAKE = """\
#!/bin/sh
for word; do
    case $word in file,id=console,path=*) console=${word#file,id=console,path=} ;; esac
done
echo $$ >>%(runs)s
%(does)s
"""
BOOTS = "printf '[    0.0] Linux\\nqhca-lab: user space\\n' >$console; exec sleep 600"


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host with a /dev/kvm that can be opened, and a QEMU that does what does() specifies."""
    monkeypatch.delenv("QHCA_ACCEL", raising=False)
    monkeypatch.setattr(per_boot, "BOOT_ID", tmp_path / "BOOT_ID")
    for name in ("KVM", "CPUINFO"):
        monkeypatch.setattr(accel, name, tmp_path / name)
    monkeypatch.setattr(accel, "KEPT", tmp_path / "build/accel.json")
    files = [tmp_path / name for name in ("vmlinuz", "initrd")]
    monkeypatch.setattr(accel.kernels, "kernel",
                        lambda _what: types.SimpleNamespace(vmlinuz=files[0], initrd=files[1]))
    for path in (tmp_path / "KVM", *files):
        path.touch()
    (tmp_path / "BOOT_ID").write_text("one\n")
    (tmp_path / "CPUINFO").write_text("processor : 0\nmodel name : A\n")
    runs = tmp_path / "runs"
    qemu = tmp_path / "qemu"

    class Host(types.SimpleNamespace):
        def does(self, line):
            qemu.write_text(FAKE % {"runs": runs, "does": line})
            qemu.chmod(0o755)

        def choose(self):
            return accel.choose(Options(binary=str(qemu)), self.said.append)

        @property
        def pids(self):
            return [int(n) for n in runs.read_text().split()] if runs.exists() else []

    return Host(tmp=tmp_path, qemu=qemu, said=[])


def test_a_guest_comes_up(host):
    host.does(BOOTS)
    assert host.choose() == accel.Choice("kvm", "a trial guest booted")
    assert str(host.choose()) == "KVM (a trial guest booted)"
    # It is killed at once, without waiting for it.
    assert not Path(f"/proc/{host.pids[0]}").exists()


@pytest.mark.parametrize("does, why", [
    # QEMU 10's message for a /dev/kvm that is something else
    ("echo 'qemu: failed to initialize kvm: Inappropriate ioctl for device' >&2; exit 1",
     "qemu: failed to initialize kvm: Inappropriate ioctl for device"),
    ("kill -SEGV $$", "QEMU ended"),
    # the kernel panics, and -no-reboot ends QEMU
    ("printf 'panic' >$console", "QEMU ended"),
    # QEMU stops the guest, but keeps running
    ("echo 'KVM internal error. Suberror: 1' >&2; exec sleep 600",
     "KVM internal error. Suberror: 1"),
])
def test_a_guest_that_ends(host, does, why):
    host.does(does)
    assert host.choose() == accel.Choice("tcg", f"KVM: the trial guest did not boot: {why}")


@pytest.mark.parametrize("says, why", [
    ("", "it hung before its kernel printed anything"),
    ("printf '[    0.000000] Linux version 6\\n[    0.5] Mount-cache' >$console; ",
     "it hung after 'Mount-cache'"),
    # the kernel shows its command line, which has the word in it
    ("""printf '[  0.1] Command line: rdinit=x -- echo "qhca-lab: user space"\\n' >$console; """,
     """it hung after 'Command line: rdinit=x -- echo "qhca-lab: user space"'"""),
])
def test_a_guest_that_hangs(host, monkeypatch, says, why):
    monkeypatch.setattr(accel, "SILENCE", 0.5)
    host.does(f"{says}trap '' TERM; while :; do sleep 600; done")
    assert host.choose() == accel.Choice("tcg", f"KVM: the trial guest did not boot: {why}")
    assert not Path(f"/proc/{host.pids[0]}").exists()


def test_a_guest_that_goes_on_for_ever(host, monkeypatch):
    """Its output does not affect the result."""
    monkeypatch.setattr(accel, "LIMIT", 1.0)
    host.does("while :; do echo again >>$console; sleep 0.05; done")
    assert host.choose().why.endswith("it hung after 'again'")


def test_no_kvm(host):
    """Nothing is started, and no result is cached: it may exist the next time."""
    host.does(BOOTS)
    (host.tmp / "KVM").rename(host.tmp / "elsewhere")
    assert host.choose() == accel.Choice("tcg", f"KVM: {accel.KVM}: No such file or directory")
    assert not host.pids
    (host.tmp / "elsewhere").rename(host.tmp / "KVM")
    assert host.choose().name == "kvm"


def test_forced(host, monkeypatch):
    """Failures are cached, too."""
    host.does("exit 1")
    for name in ("kvm", "tcg", "tcg,thread=single"):
        monkeypatch.setenv("QHCA_ACCEL", name)
        assert host.choose() == accel.Choice(name, "QHCA_ACCEL")
    assert not host.pids and str(accel.Choice("tcg,thread=single", "w")) == "TCG (w)"
    for name in ("auto", ""):
        monkeypatch.setenv("QHCA_ACCEL", name)
        assert host.choose().name == "tcg"
    assert len(host.pids) == 1


@pytest.mark.parametrize("does, name", [(BOOTS, "kvm"), ("exit 1", "tcg")])
def test_tried_once(host, does, name):
    host.does(does)
    first = host.choose()
    assert first.name == name and host.choose() == first
    assert len(host.pids) == 1 and len(host.said) == 1


def test_two_labs_at_once(host):
    """The second one waits for the first one's answer."""
    host.does(BOOTS)
    found = []
    threads = [threading.Thread(target=lambda: found.append(host.choose())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {c.name for c in found} == {"kvm"} and len(found) == 4 and len(host.pids) == 1


@pytest.mark.parametrize("changes", [
    lambda h: (h.tmp / "BOOT_ID").write_text("two\n"),
    lambda h: (h.tmp / "CPUINFO").write_text("processor : 0\nmodel name : B\n"),
    lambda h: (h.tmp / "vmlinuz").write_text("another kernel"),
    lambda h: (h.tmp / "initrd").write_text("another initramfs"),
    lambda h: os.utime(h.qemu, (1, 1)),
    lambda h: accel.KEPT.write_text('{"boot": "one"'),
    lambda h: accel.KEPT.write_text("[]"),
], ids=["host-boot", "cpu", "kernel", "initramfs", "qemu", "damaged", "damaged-too"])
def test_tried_again(host, changes):
    """Everything that the result depends on."""
    host.does(BOOTS)
    host.choose()
    changes(host)
    assert host.choose().name == "kvm" and len(host.pids) == 2
    host.choose()
    assert len(host.pids) == 2


def test_answers_of_two_kernels_are_kept(host, monkeypatch):
    """Results from another boot of the host are not used."""
    host.does(BOOTS)
    host.choose()
    usual = accel.kernels.kernel
    other = host.tmp / "other"
    other.write_text("debug")
    monkeypatch.setattr(accel.kernels, "kernel",
                        lambda _what: types.SimpleNamespace(vmlinuz=other, initrd=other))
    host.choose()
    monkeypatch.setattr(accel.kernels, "kernel", usual)
    host.choose()
    assert len(host.pids) == 2
    (host.tmp / "BOOT_ID").write_text("two\n")
    host.choose()
    assert len(json.loads(accel.KEPT.read_text())["answers"]) == 1


def test_the_trial_is_one_of_ours(host, monkeypatch):
    """The machine and the kernel arguments of the labs' guests."""
    kernel = accel.kernels.kernel("default")
    kernel.name = kernel.modules = None
    monkeypatch.setattr(accel.kernels, "kernel", lambda _what: kernel)
    words = accel.command_line(host.qemu, kernel, Path("/c"))
    guest = {"name": "a", "number": 1, "nic": "none", "mac": "", "ip": "", "ip6": ""}
    lab = machine.command_line(guest, [], Path("/d"), Path("/d"), Options(accel="kvm"))

    def after(words, option):
        return words[words.index(option) + 1]

    for option in ("-machine", "-accel", "-cpu", "-kernel", "-initrd"):
        assert after(words, option) == after(lab, option), option
    assert after(words, "-append").startswith(machine.KERNEL_ARGS)
