# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel that guests boot: names, required files, and what QEMU and guests get."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "lab"))

from qhca_lab import Lab, LabError, Options, cli, kernels, machine, saved_guest  # noqa: E402

GUEST = {"name": "a", "number": 1, "nic": "none", "mac": machine.mac_of(1), "ip": "", "ip6": ""}


@pytest.fixture(autouse=True)
def build(tmp_path, monkeypatch):
    """A build folder with nothing in it."""
    folder = tmp_path / "build"
    folder.mkdir()
    for module in (kernels, machine):
        monkeypatch.setattr(module, "BUILD", folder)
    monkeypatch.setattr(kernels, "GUEST", folder / "guest")
    monkeypatch.delenv("QHCA_KERNEL", raising=False)
    return folder


@pytest.fixture
def tree(tmp_path):
    """The parts of a build tree that are used."""
    folder = tmp_path / "linux"
    for name in (kernels.BZIMAGE, "drivers/a.ko", "drivers/sub/b.ko"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / "modules.order").write_text("drivers/a.o\ndrivers/sub/b.o\n")
    return folder


def put(kernel, key="1", **files):
    """KERNEL as `make kernel` makes it ready, as the image KEY."""
    image = kernel.folder / f"image-{key}"
    image.mkdir(parents=True)
    for name in ("vmlinuz", "initrd", "modules.img"):
        (image / name).touch()
    for name, text in files.items():
        (image / name).write_text(text + "\n")
    link = kernel.folder / "image"
    link.unlink(missing_ok=True)
    link.symlink_to(image)
    (kernel.driver / "guest").mkdir(parents=True, exist_ok=True)
    for module in ("qhca", "qhca_ib"):
        (kernel.driver / "guest" / f"{module}.ko").touch()


def line(**options):
    return machine.command_line(GUEST, [], Path("/d"), Path("/d"), Options(**options))


# ---------------------------------------------------------------------- names


def test_default(build):
    """Without the option nothing changes."""
    for what in ("", "default"):
        assert kernels.kernel(what) == kernels.kernel("default")
    kernel = kernels.kernel("default")
    assert (kernel.vmlinuz, kernel.driver) == (build / "guest/vmlinuz", build / "driver")
    assert kernel.modules is None and kernel.tree is None
    assert Options().kernel == "default"
    assert "driver" not in machine.settings(GUEST, Options())


def test_words(tmp_path, monkeypatch):
    assert kernels.kernel("newest").name == "newest"
    monkeypatch.setenv("QHCA_KERNEL", "newest")
    assert Options().kernel == "newest"
    kernel = kernels.kernel("debug")
    assert kernel.name == "debug" and kernel.tree == kernel.folder / "tree"
    for what in ("6.12", "nosuch", str(tmp_path / "gone")):
        with pytest.raises(LabError, match="unknown kernel .*: use default, newest, debug or the folder"):
            kernels.kernel(what)


def test_folders(tree, monkeypatch):
    """All spellings of a folder are the same kernel; another folder is another one."""
    monkeypatch.chdir(tree.parent)
    kernel = kernels.kernel("linux")
    assert kernel.what == str(tree) and kernel.tree == tree
    link = tree.parent / "link"
    link.symlink_to(tree)
    for what in (str(tree), "./linux/", "linux/../linux", str(link)):
        assert kernels.kernel(what) == kernel
    (tree.parent / "debug").mkdir()
    assert kernels.kernel("./debug").name not in ("", kernel.name)


# ------------------------------------------------------------- what must be there


@pytest.mark.parametrize("what, command", [
    ("default", "make build"), ("newest", "make kernel KERNEL=newest"),
    ("debug", "make kernel KERNEL=debug")])
def test_missing(what, command):
    with pytest.raises(LabError, match=f"vmlinuz is missing: run '{command}' first"):
        kernels.kernel(what).check()


def test_built(tree):
    kernel = kernels.kernel("newest")
    put(kernel)
    kernel.check()
    (kernel.driver / "guest" / "qhca_ib.ko").unlink()
    with pytest.raises(LabError, match="qhca_ib.ko is missing: run 'make kernel KERNEL=newest'"):
        kernel.check()


def test_a_tree_that_was_built_anew(tree):
    """An old kernel is not booted instead of a new one."""
    kernel = kernels.kernel(str(tree))
    with pytest.raises(LabError, match=f"is missing: run 'make kernel KERNEL={tree}' first"):
        kernel.check()
    put(kernel, stamp=kernels.stamp(tree))
    kernel.check()
    for path in (tree / kernels.BZIMAGE, tree / "drivers/sub/b.ko"):
        before = path.stat()
        os.utime(path, (1, 1))
        with pytest.raises(LabError, match=f"rebuilt: run 'make kernel KERNEL={tree}'"):
            kernel.check()
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        kernel.check()
    (tree / "drivers/a.ko").unlink()
    with pytest.raises(LabError, match="has no drivers/a.ko: run 'make bzImage modules' there"):
        kernel.check()


def test_no_build_tree(tmp_path):
    """A folder without a kernel is refused, with advice."""
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(LabError, match="no modules.order: run 'make bzImage modules' there"):
        kernels.stamp(empty)
    (empty / "modules.order").touch()
    with pytest.raises(LabError, match="no arch/x86/boot/bzImage: run 'make bzImage modules'"):
        kernels.stamp(empty)


def make_kernel(what, tmp_path):
    done = subprocess.run([TOP / "lab/build/make-kernel", what], capture_output=True, text=True,
                          env=dict(os.environ, QHCA_BUILD=str(tmp_path / "build")))
    assert done.returncode == 1 and done.stdout == ""
    return done.stderr


def test_make_kernel_refuses(tree, tmp_path):
    """The error comes before anything is fetched or built."""
    assert "name the kernel: make kernel KERNEL=newest" in make_kernel("", tmp_path)
    assert "is no kernel's build tree: it has no .config" in make_kernel(str(tree), tmp_path)
    needs = [x for x in (TOP / "lab/build/kernel.config").read_text().splitlines() if x[0] != "#"]
    assert len(needs) > 10
    config = tree / ".config"
    (tree / "include/config").mkdir(parents=True)
    (tree / "include/config/kernel.release").write_text("7.0.0\n")
    config.write_text("\n".join(x for x in needs if "VIRTIO_BLK" not in x and "TMPFS" not in x))
    said = make_kernel(str(tree), tmp_path)
    assert "CONFIG_DEVTMPFS=y CONFIG_TMPFS=y CONFIG_VIRTIO_BLK=m; see lab/build" in said
    config.write_text("\n".join(needs + ["CONFIG_MODULE_SIG_FORCE=y"]))
    assert "only signed modules" in make_kernel(str(tree), tmp_path)
    odd = tmp_path / "a tree"
    shutil.copytree(tree, odd)
    assert "cannot be built in a folder with such a name" in make_kernel(str(odd), tmp_path)


# ----------------------------------------------------------- QEMU, guests, copies


def test_command_line():
    """Image, initramfs and modules of one kernel; all else is as without."""
    kernel = kernels.kernel("newest")
    put(kernel)
    args, plain = line(kernel="newest"), line()
    image = kernel.image
    assert image.name == "image-1"
    assert args[args.index("-kernel") + 1] == str(image / "vmlinuz")
    assert args[args.index("-initrd") + 1] == str(image / "initrd")
    assert "qhcalab.driver=/qhca/build/kernels/newest/driver" in args[args.index("-append") + 1]
    (at,) = [n for n, x in enumerate(args) if x.startswith(f"file={image}/modules.img,")]
    assert "readonly=on" in args[at]
    assert args[at - 1] == "-drive" and args[at + 1] == "-device"
    del args[at - 1:at + 3]
    for words in (args, plain):
        for option in ("-kernel", "-initrd", "-append"):
            del words[words.index(option) + 1]
    assert args == plain


def test_a_saved_guest_is_of_one_kernel(monkeypatch):
    monkeypatch.setattr(saved_guest, "_qemu_build", lambda: "aa")
    kernel = kernels.kernel("newest")
    put(kernel)
    keys = [saved_guest._key(Options()), saved_guest._key(Options(kernel="newest"))]
    put(kernel, "2")
    keys.append(saved_guest._key(Options(kernel="newest")))
    assert len(set(keys)) == 3
    put_back = kernel.folder / "image"
    put_back.unlink()
    put_back.symlink_to(kernel.folder / "image-1")
    assert saved_guest._key(Options(kernel="newest")) == keys[1]


# Instead of pytest: the kernel that QEMU would boot.
BOOTS = """import sys; sys.path.insert(0, "lab")
from pathlib import Path
from qhca_lab import Options, machine
guest = {"name": "a", "number": 1, "nic": "none", "mac": "", "ip": "", "ip6": ""}
args = machine.command_line(guest, [], Path("/d"), Path("/d"), Options())
print(args[args.index("-kernel") + 1])
"""


@pytest.mark.parametrize("target, told, environment, boots", [
    ("test-guest", [], None, "guest"),
    ("test-guest", ["KERNEL=newest"], None, "kernels/newest/image"),
    ("test-guest", [], "newest", "kernels/newest/image"),
    ("test-guest-labs", ["KERNEL=debug"], "newest", "kernels/debug/image"),
    ("test-docs", ["KERNEL=default"], "newest", "guest")])
def test_make_boots_it(tmp_path, target, told, environment, boots):
    """`make test-guest KERNEL=newest` not only builds that kernel: its labs boot it."""
    script = tmp_path / "boots.py"
    script.write_text(BOOTS)
    folder = tmp_path / "products"
    env = dict(os.environ, QHCA_BUILD=str(folder), MAKEFLAGS="")
    if environment:
        env["QHCA_KERNEL"] = environment
    done = subprocess.run(
        ["make", "-s", "-C", TOP, target, "BUILT=1", *told, f"HOST_PYTEST={sys.executable} {script}"],
        capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(folder / boots / "vmlinuz")]


def test_up(monkeypatch, tmp_path, capsys):
    """The lab keeps the value of --kernel."""
    asked = []
    monkeypatch.setattr(Lab, "up", lambda name, nics, options, **_: asked.append(options.kernel))
    assert cli.main(["up", "--kernel", "newest"]) == 0
    monkeypatch.setenv("QHCA_KERNEL", "newest")
    assert cli.main(["up", "--kernel", "default"]) == cli.main(["up"]) == 0
    assert cli.main(["up", "--kernel", str(tmp_path / ".." / tmp_path.name)]) == 0
    assert asked == ["newest", "default", "newest", str(tmp_path)]
    assert cli.main(["up", "--kernel", "nosuch"]) == 125
    assert "error: unknown kernel 'nosuch'" in capsys.readouterr().err
