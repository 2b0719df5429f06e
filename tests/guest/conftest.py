# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures of the guest tests: booted labs, kept for as many tests as possible.

Only one lab is up at a time; tests are ordered by the labs that they use. An error message of a
guest's kernel fails the test in which it occurs, unless that is marked with expects_dmesg.
"""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from labs import RECIPES, TOP, Manager, kernel_trouble  # noqa: E402
from qhca_lab import LabError, kernels  # noqa: E402
from qhca_lab.paths import BUILD  # noqa: E402
from qhca_lab.selftests import place  # noqa: E402

_failed = pytest.StashKey[bool]()


def lab_of(item):
    """The name of the lab fixture a test uses, or None."""
    for name in RECIPES:
        if name in getattr(item, "fixturenames", ()):
            return name
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Tests of one lab follow each other; -m pair picks those of the first pair."""
    order = list(RECIPES)
    for item in items:
        if lab_of(item) == "pair":
            item.add_marker("pair")
    items.sort(key=lambda i: order.index(lab_of(i)) if lab_of(i) else -1)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if outcome.get_result().failed:
        item.stash[_failed] = True


@pytest.fixture(scope="session")
def manager(request):
    reporter = request.config.pluginmanager.getplugin("terminalreporter")
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def say(text):
        with capture.global_and_fixture_disabled():
            reporter.ensure_newline()
            reporter.write_line(f"    {text}")

    manager = Manager(say)
    yield manager
    manager.drop()
    assert not manager.late, "\n".join(manager.late)


def _lab(request, manager, kind):
    lab = manager.get(kind)
    late, manager.late = manager.late, []
    yield lab
    for guest in lab:
        guest.end_jobs()
    if all(guest.alive for guest in lab):
        lab.reset_mtu()
    trouble = []
    for guest in lab:
        trouble += [f"guest {guest.name}: {line}"
                    for line in kernel_trouble(guest.dmesg_since_mark())]
        guest.dmesg_mark()
    dead = [guest for guest in lab if not guest.alive]
    evidence = "\n".join(guest.evidence(60) for guest in lab) if trouble or dead else ""
    off = [] if dead else [f"guest {guest.name}: {name} is off"
                           for guest in lab for name in guest.checkers_off()]
    if off:
        manager.drop(check=False)       # the next test needs them
    elif request.node.stash.get(_failed, False) or trouble:
        manager.after_failure()
    if dead:
        names = ", ".join(guest.name for guest in dead)
        pytest.fail("\n".join([*late, f"QEMU of guest {names} has ended", evidence]),
                    pytrace=False)
    if request.node.get_closest_marker("expects_dmesg"):
        trouble = off = []
    if late or trouble or off:
        pytest.fail("the kernel complains:\n" + "\n".join(late + trouble + off) + f"\n{evidence}",
                    pytrace=False)


def _fixture(kind):
    @pytest.fixture(name=kind)
    def lab(request, manager):
        yield from _lab(request, manager, kind)

    lab.__doc__ = f"The lab {kind}: {RECIPES[kind]}"
    return lab


rxe_pair = _fixture("rxe_pair")
pair = _fixture("pair")
mixed = _fixture("mixed")
iommu_pair = _fixture("iommu_pair")
swiotlb_iommu_pair = _fixture("swiotlb_iommu_pair")
swiotlb_pair = _fixture("swiotlb_pair")
loss_pair = _fixture("loss_pair")
big = _fixture("big")
trio = _fixture("trio")
wire_pair = _fixture("wire_pair")
rough_pair = _fixture("rough_pair")
newest_pair = _fixture("newest_pair")
bare_pair = _fixture("bare_pair")
debug_pair = _fixture("debug_pair")


class Programs:
    """The C programs of tests/guest/progs, built for the guests."""

    def __init__(self):
        subprocess.run(
            [str(TOP / "lab" / "build" / "build-progs")], check=True, capture_output=True, text=True
        )

    @staticmethod
    def path(name):
        """The path of program NAME in a guest."""
        assert (BUILD / "guest-progs" / name).exists(), f"no program {name}"
        return f"/qhca/build/guest-progs/{name}"


@pytest.fixture(scope="session")
def progs():
    try:
        return Programs()
    except subprocess.CalledProcessError as error:
        pytest.fail(f"the guest programs do not build:\n{error.stderr}", pytrace=False)


@pytest.fixture(scope="session")
def selftests():
    """Builds the selftests of the kernel that labs boot; calling it returns the path of
    tools/testing/selftests in a guest."""
    try:
        folder = place.shared(kernels.kernel(kernels.usual()).version)
    except LabError as error:
        pytest.fail(str(error), pytrace=False)
    return lambda: folder


@pytest.fixture(scope="session")
def modules():
    """Builds tests/guest/kmod for the kernel that labs boot; calling it with a name returns the
    path of that .ko."""
    kernel = kernels.kernel(kernels.usual())
    words = [str(TOP / "lab" / "build" / "build-test-modules")]
    words += ["--kernel", kernel.what] if kernel.name else []
    built = subprocess.run(words, check=False, capture_output=True, text=True)
    if built.returncode:
        pytest.fail(f"the test modules do not build:\n{built.stderr}", pytrace=False)
    folder = f"/qhca/build/{kernel.folder.relative_to(BUILD)}/guest-modules"
    return lambda name: f"{folder}/{name}.ko"
