# SPDX-License-Identifier: GPL-2.0-or-later
"""How a guest loads the built driver, with a fake kernel."""

import errno
import os
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "lab" / "guest"))

import driver  # noqa: E402
import guestenv  # noqa: E402


class Kernel:
    """Records what is loaded, and how."""

    def __init__(self):
        self.loaded = ["ib_core"]
        self.said = []
        self.refuses = None

    def insert(self, module, image, parameters):
        if module == self.refuses:
            raise OSError(f"{module}.ko: {os.strerror(errno.EINVAL)}")
        assert module.encode() in image
        self.loaded.append(module)
        self.said.append((module, *parameters))

    def modprobe(self, words, **_kwargs):
        self.said.append(tuple(words))
        if self.refuses in words:
            return type("Done", (), {"returncode": 1})
        self.loaded += words[2:]
        return type("Done", (), {"returncode": 0})


def image(name, needed):
    return b"\x7fELF..\0license=GPL\0depends=" + needed + b"\0name=" + name + b"\0.."


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    kernel = Kernel()
    monkeypatch.setattr(driver, "loaded", lambda module: module in kernel.loaded)
    monkeypatch.setattr(driver, "insert", kernel.insert)
    monkeypatch.setattr(driver.subprocess, "run", kernel.modprobe)
    settings = tmp_path / "settings"
    settings.write_text(f"name=a\ndriver={tmp_path}\n")
    monkeypatch.setattr(guestenv, "SETTINGS", str(settings))
    (tmp_path / "guest").mkdir()
    (tmp_path / "guest/qhca.ko").write_bytes(image(b"qhca", b""))
    (tmp_path / "guest/qhca_ib.ko").write_bytes(image(b"qhca_ib", b"ib_uverbs,qhca,ib_core"))
    return kernel


def test_in_order_with_what_they_need(kernel):
    """Each module gets its own parameters, and what is there already is not loaded again."""
    driver.load(["qhca_ib.layout=list", "qhca.x=1", "qhca.y=2", ""])
    assert kernel.said == [("/usr/sbin/modprobe", "-a", "ib_uverbs"),
                           ("qhca", "x=1", "y=2"), ("qhca_ib", "layout=list")]
    driver.load([])
    assert len(kernel.said) == 3


def test_what_is_missing_is_loaded(kernel):
    kernel.loaded += ["qhca", "ib_uverbs"]
    driver.load([])
    assert kernel.said == [("qhca_ib",)]


def test_a_module_that_is_not_built(kernel, tmp_path):
    """Nothing is loaded then."""
    (tmp_path / "guest/qhca_ib.ko").unlink()
    with pytest.raises(FileNotFoundError, match="no qhca_ib.ko in .*guest: build it first"):
        driver.load([])
    assert kernel.said == []


def test_a_module_that_the_kernel_refuses(kernel):
    kernel.refuses = "qhca_ib"
    with pytest.raises(OSError, match="qhca_ib.ko: Invalid argument"):
        driver.load([])
    assert kernel.said[-1] == ("qhca",)


def test_a_needed_module_that_is_not_there(kernel):
    kernel.refuses = "ib_uverbs"
    with pytest.raises(OSError, match="modprobe -a ib_uverbs: status 1"):
        driver.load([])
    assert "qhca" not in kernel.loaded


def test_needs():
    assert driver.needs(image(b"x", b"")) == driver.needs(b"\x7fELF") == []
    assert driver.needs(image(b"x", b"a,b")) == ["a", "b"]


def test_the_kernel_is_asked():
    """It refuses what is no module, a user that is not root, or all modules."""
    with pytest.raises(OSError, match="^qhca.ko: .+: see the kernel's log"):
        driver.insert("qhca", b"no module", [])
