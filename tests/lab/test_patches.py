# SPDX-License-Identifier: GPL-2.0-or-later
"""The series of patches for QEMU, Linux and rdma-core: they can be written, and nothing is
missing. Cutting a whole project takes long, and so does checking that the patches apply to
pristine sources and that each builds."""

import importlib.machinery
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lab"))

# As the build root names them: the checkout's own path may have a space.
from qhca_lab.paths import BUILD, TOP  # noqa: E402

# Why a test is long
CUTTING = "a whole project is cut, a commit for each patch"

DRIVER = TOP / "kernel-driver"
PROVIDER = TOP / "rdma-core-provider"


def load(path: Path):
    """A Python script without a suffix as a module."""
    loader = importlib.machinery.SourceFileLoader(path.name.replace("-", "_"), str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


make_patches = load(DRIVER / "make-patches")


def in_root(*command: str | Path) -> str:
    """Its output; pytest shows it on failure."""
    done = subprocess.run([str(TOP / "lab/in-root"), *map(str, command)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert not done.returncode, done.stdout
    return done.stdout


def added(out: Path) -> Counter:
    """{file: number of patches that create it} of a series."""
    return Counter(m for patch in out.rglob("*.patch") for m in
                   re.findall(r"^--- /dev/null\n\+\+\+ b/(\S+)", patch.read_text(), re.M))


def added_lines(out: Path, series: str) -> int:
    """Lines that the patches of @series add, to all files but tests."""
    n, test = 0, False
    for patch in out.glob(f"[0-9]*-{series}/*.patch"):
        for line in patch.read_text().split("\n"):
            if line.startswith("+++ "):
                test = line.startswith("+++ b/tests/")
            elif line.startswith("+"):
                n += not test
    print(f"{series}: {n} lines")
    return n


def covers(out: Path) -> list[Path]:
    return sorted(out.rglob("0000-cover-letter.patch"))


def source(package: str) -> Path:
    """The tarball that the build has fetched: of the lab's version, which is the oldest."""
    cache = Path(os.environ.get("QHCA_CACHE", BUILD / "cache"))
    found = sorted(cache.glob(f"source/{package}_*.orig.tar.*"))
    if not found:
        pytest.skip(f"no source of {package} yet: make build fetches it")
    return found[0]


# ------------------------------------------------------------------- the driver

@pytest.fixture(params=["old", "new"])
def linux(tmp_path, request):
    """As much of a Linux tree as a series looks at: one without, one with all that Kbuild
    asks for."""
    tree = tmp_path / "linux"
    for file, (_, _, anchor) in make_patches.HOOKS.items():
        (tree / file).parent.mkdir(parents=True, exist_ok=True)
        (tree / file).write_text(f"{anchor}\n")
    (tree / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 1\n")
    (tree / "MAINTAINERS").write_text("QEMU\nM:\tx\n\nQIB DRIVER\nM:\ty\n")
    kbuild = (DRIVER / "Kbuild").read_text()
    new = request.param == "new"
    for pattern, header, _ in make_patches.compat.CALL.findall(kbuild):
        file = tree / "include" / header
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as f:
            f.write(pattern.replace(".*", " ") + "\n" if new else "\n")
    for header, _ in make_patches.compat.PRESENT.findall(kbuild):
        if new:
            (tree / "include" / header).write_text("\n")
    for folder in ("linux", "uapi/rdma"):
        (tree / "include" / folder).mkdir(parents=True, exist_ok=True)
    (tree / make_patches.DRIVER_IDS).write_text(
        "enum rdma_driver_id {\n\tRDMA_DRIVER_UNKNOWN,\n};\n\nenum other {\n\tX,\n};\n")
    (tree / "include/linux/slab.h").write_text("#define kzalloc_obj(P, ...)\n" if new else "\n")
    return tree


def test_each_file_of_the_driver_is_in_one_patch():
    series = make_patches.Series()
    files = Counter(series.sources())
    assert not [f for f, n in files.items() if n != 1]
    here = {str(f.relative_to(DRIVER)) for f in DRIVER.rglob("*")
            if f.is_file() and not f.name.startswith(".") and
            "series" not in f.relative_to(DRIVER).parts and
            "__pycache__" not in f.parts and not f.name.endswith((".mod.c", ".o", ".ko", ".cmd"))}
    rest = here - set(files)
    assert rest == set(series.rules["not_sent"])
    assert set(files) <= here


def check_series(series: dict, patches: list[Path]) -> None:
    """It is for one tree, and short enough for it: netdev takes 15 patches."""
    assert len(patches) == len(series["patch"]) <= 15
    net = series["prefix"] == "PATCH net-next"
    assert net or series["prefix"] == "PATCH rdma-next"
    for patch in patches:
        text = patch.read_text()
        subject = re.search(r"^Subject: \[(.*?) \d+/\d+\] (.*)$", text, re.M)
        assert subject[1] == series["prefix"]
        assert subject[2].startswith(("net: ", "Documentation: ") if net else "RDMA/")
        other = "drivers/infiniband/" if net else "(?:drivers/net|include/linux)/"
        assert not re.findall(rf"^\+\+\+ b/{other}.*", text, re.M), patch


@pytest.mark.long(CUTTING)
@pytest.mark.parametrize("linux", ["old", "new"], indirect=True)
def test_the_driver_is_cut_and_put_together(linux, tmp_path):
    """Each file comes with one patch, and the last tree is the driver, without the
    differences between kernels."""
    out = tmp_path / "out"
    in_root(DRIVER / "make-patches", "--author", "A <a@b>", linux, out)
    series = make_patches.Series()
    new = added(out)
    assert set(new.values()) == {1}
    wanted = {make_patches.destination(f) for f in series.sources()
              if not f.startswith("include/uapi")}
    assert wanted <= set(new)
    assert [c.parent.name for c in covers(out)] == \
        [f"{n:02}-{s['name']}" for n, s in enumerate(series.series, 1)]
    for cover in covers(out):
        assert "*** " not in cover.read_text() and "applies to Linux 6.12.1." in cover.read_text()
    text = "".join(p.read_text() for p in out.rglob("*.patch"))
    assert "QHCA_HAVE" not in text and "qhca_compat" not in text
    assert "RDMA_DRIVER_UNKNOWN,\n+\tRDMA_DRIVER_QHCA,\n };" in text
    assert "driver_id = RDMA_DRIVER_QHCA," in text
    for s, cover in zip(series.series, covers(out)):
        check_series(s, sorted(cover.parent.glob("*.patch"))[1:])
    stages = series.load(linux)
    last = series.tree(stages, len(series.patches) - 1)
    for file, resolved in stages.full.items():
        if not file.startswith("include/uapi"):
            assert len(last[make_patches.destination(file)].split()) >= \
                len(resolved.split()) - 10, file


def test_a_later_feature_is_not_there_before(linux):
    series = make_patches.Series()
    stages = series.load(linux)
    subjects = [p["subject"] for p in series.patches]
    n = subjects.index("RDMA/qhca: add memory windows")
    before, after = series.tree(stages, n - 1), series.tree(stages, n)
    main = "drivers/infiniband/hw/qhca/main.c"
    assert "alloc_mw" not in before[main] and "alloc_mw" in after[main]
    assert "drivers/infiniband/hw/qhca/mw.c" not in before
    # of the debugging aids nothing is left in the trees before
    for subject, parts in (("net: qhca: add debugging aids", ("drivers/", "include/")),
                           ("RDMA/qhca: add debugging aids", ("drivers/infiniband/",))):
        tree = series.tree(stages, subjects.index(subject) - 1)
        assert not [f for f, t in tree.items() if f.startswith(parts) and
                    ("trace_qhca" in t or "CONFIG_QHCA_DEBUG" in t and "debug.h" not in f)]


def test_user_space_gets_what_the_provider_needs_and_not_more():
    """The two halves of the contract make up the whole."""
    whole = make_patches.uapi.paragraphs((DRIVER / "include/uapi/rdma/qhca-hw.h").read_text())
    names = set().union(*map(make_patches.uapi.defined, whole)) - {"QHCA_HW_H"}
    user, kernel = make_patches.headers().values()
    of = [set().union(*map(make_patches.uapi.defined, make_patches.uapi.paragraphs(t)))
          for t in (user, kernel)]
    assert names <= of[0] | of[1]
    assert not of[0] & of[1]
    assert {"qhca_cqe", "qhca_wqe_ctrl", "QHCA_DB_SQ", "qhca_alloc_ucontext_resp"} <= of[0]
    assert {"qhca_qpc", "QHCA_CMD_CREATE_QP", "QHCA_REG_CTRL"} <= of[1]


# ------------------------------------------------------------- provider, device

def test_each_file_of_the_provider_is_in_series_toml():
    rules = tomllib.loads((PROVIDER / "series/series.toml").read_text())
    files = Counter(f for patch in rules["patch"] for f in patch.get("files", []))
    assert not [f for f, n in files.items() if n != 1]
    here = {f.name for f in (PROVIDER / "qhca").iterdir() if f.suffix in (".c", ".h")}
    assert here == {f for f in files if f.endswith((".c", ".h"))}


def test_each_file_of_the_device_is_in_series_toml():
    """By its name, or with all of a folder of QEMU's tree."""
    module = load(TOP / "qemu-hw/make-patches")
    series = module.Series()
    whole = [path for patch in series.patches for path in patch.get("paths", [])]
    named = Counter(map(module.destination, series.sources()))
    for file in map(str, load(TOP / "qemu-hw/apply-overlay").wanted()):
        if file != "hw/net/qhca/qhca-compat.h":
            below = sum(file == path or file.startswith(path + "/") for path in whole)
            assert named[file] + below == 1, file


@pytest.mark.long(CUTTING)
def test_each_file_of_the_provider_is_in_one_patch(tmp_path):
    tree, out = tmp_path / "rdma-core", tmp_path / "out"
    tree.mkdir()
    in_root("tar", "-xf", source("rdma-core"), "-C", tree, "--strip-components=1")
    in_root(PROVIDER / "make-patches", tree, out)
    new = added(out)
    assert set(new.values()) == {1}
    files = {"providers/qhca/" + str(f.relative_to(PROVIDER / "qhca"))
             for f in (PROVIDER / "qhca").rglob("*") if f.is_file()}
    assert set(new) == files | {"kernel-headers/rdma/qhca-abi.h"}
    text = "".join(p.read_text() for p in out.glob("*.patch"))
    for file in ("MAINTAINERS", "README.md", "CMakeLists.txt", "debian/copyright", "debian/control",
                 "debian/ibverbs-providers.install", "redhat/rdma-core.spec",
                 "suse/rdma-core.spec", "libibverbs/verbs.h", "kernel-headers/CMakeLists.txt",
                 "kernel-headers/rdma/ib_user_ioctl_verbs.h"):
        assert f"+++ b/{file}\n" in text, file
    assert "VERBS_DRIVER_ID(RDMA_DRIVER_QHCA)" in text and "RDMA_DRIVER_UNKNOWN);" not in text
    cover = covers(out)[0].read_text()
    assert "*** " not in cover and "based on rdma-core " in cover and "base-commit" not in text
    # The provider is cut into patches that can be reviewed.
    assert max(p.read_text().count("\n") for p in out.glob("*.patch")) < 2500


@pytest.mark.long(CUTTING)
def test_each_file_of_the_device_is_in_one_patch(tmp_path):
    """It also reports if the last tree differs from the overlay."""
    out = tmp_path / "out"
    in_root(TOP / "qemu-hw/make-patches", source("qemu"), out)
    new = added(out)
    assert set(new.values()) == {1}
    files = {str(f) for f in load(TOP / "qemu-hw/apply-overlay").wanted()}
    assert set(new) == files - {"hw/net/qhca/qhca-compat.h"}
    series = load(TOP / "qemu-hw/make-patches").Series().series
    mails = len(list((TOP / "qemu-hw/patches").glob("*.patch")))
    assert [(c.parent.name, len(list(c.parent.glob("*.patch"))) - 1) for c in covers(out)] == \
        [(f"{n:02}-{s['name']}", sum(mails if "mails" in p else 1 for p in s["patch"]))
         for n, s in enumerate(series, 1)]
    assert added_lines(out, "device") <= 12000
    assert not [c for c in covers(out) if "*** " in c.read_text()]
    text = "".join(p.read_text() for p in out.rglob("*.patch"))
    assert "qhca-compat" not in text and "__has_include" not in text


@pytest.fixture(scope="module")
def device():
    """The series of the device, its stages, and number of the patch that ends a series."""
    series = load(TOP / "qemu-hw/make-patches").Series()
    last, n = {}, 0
    for s in series.series:
        n += len(s["patch"])
        last[s["name"]] = n - 1
    return series, series.load(set()), last


def test_the_device_comes_first_and_can_be_reviewed(device):
    series, stages, last = device
    tree = series.tree(stages, last["device"])
    text = "".join(t for f, t in tree.items() if f.endswith((".c", ".h")))
    for later in ("srq->", "xrc_", "mcg", "memlink", "shaper_", "qhca_io_", "QHCA_TR_", "e->hooks",
                  "QHCA_FEAT_ODP", "QHCA_WQE_FLUSH", "flow_rx", "dm_size"):
        assert later not in text, later
    for there in ("QHCA_QPT_RC", "QHCA_QPT_UC", "QHCA_QPT_UD", "QHCA_BUF_TREE", "unmigratable",
                  "qhca_cmd_create_eth_sq", "QHCA_WQE_RDMA_READ"):
        assert there in text, there


COMPILE = r"""
cd "$1"
for stage in */; do
    (cd "$stage" && find . -path '*/engine/*.c' |
        xargs -r -P "$(nproc)" -n 8 clang -std=gnu11 -Wall -Werror -fsyntax-only \
            -I hw/net/qhca/engine -I "$2") ||
        { echo "after patch $stage"; exit 1; }
done
"""


@pytest.mark.long("test_the_series_apply_and_build compiles it, too")
def test_the_engine_compiles_after_each_patch(device, tmp_path):
    """The engine is nothing but C, so this does not need QEMU's build, which takes long."""
    series, stages, last = device
    for number in range(max(last.values()) + 1):
        for file, text in series.tree(stages, number).items():
            path = tmp_path / f"{number + 1:02}" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    in_root("sh", "-c", COMPILE, "sh", tmp_path, DRIVER / "include/uapi")


def lone_comments(text: str) -> set[str]:
    """Comments of @text with nothing below: right before another one, or the end of a block or
    of the file. A heading may have a comment below, but no heading."""
    found = set()
    for m in re.finditer(r"^[ \t]*/\*.*?\*/\n", text, re.S | re.M):
        below = text[m.end():].lstrip()[:80] if "----" in m[0] else text[m.end():][:80].lstrip(" ")
        if "----" in m[0] and not re.match(r"/\*[\s*]*----", below) and below.startswith("/*"):
            continue
        if not below or below.startswith(("/*", "}", "#endif")):
            found.add(m[0])
    return found


def test_a_comment_goes_with_what_it_is_about(device):
    series, stages, last = device
    destination = load(TOP / "qemu-hw/make-patches").destination
    full = {destination(f): lone_comments(t) for f, t in stages.full.items()}
    alone = []
    for name, n in last.items():
        for file, text in series.tree(stages, n).items():
            if file.endswith((".c", ".h")):
                alone += [f"{name}: {file}: {c}" for c in lone_comments(text) - full[file]]
    assert not alone


@pytest.mark.parametrize("text,left", [
    ("/* one */\nint one(void);\n/* two */\nint two(void);\n", "/* two */\nint two(void);\n"),
    ("/* both */\nint one(void);\nint two(void);\n", "/* both */\nint two(void);\n"),
    ("/* ---- a ---- */\n/* one */\nint one(void);\n/* two */\nint two(void);\n",
     "/* ---- a ---- */\n/* two */\nint two(void);\n"),
    ("/* ---- a ---- */\n\nint one(void);\n\n/* ---- b ---- */\n\nint two(void);\n",
     "/* ---- b ---- */\n\nint two(void);\n"),
    ("int two(void);\n\n/* ---- a ---- */\n\nint one(void);\n", "int two(void);\n"),
    ("    switch (x) {\n    case one:\n        return a;\n    default: /* other */\n        return b;\n    }\n",
     "    switch (x) {\n    default: /* other */\n        return b;\n    }\n"),
])
def test_what_is_cut_takes_its_comment_with_it(text, left):
    source = sys.modules["c_text"].Source("a.h", text)
    source.cut_matching(r"\bone\b")
    assert source.text() == left


def test_a_cut_that_leaves_a_question_is_refused():
    """Code under a conditional on a name cannot be cut by that name."""
    text = ("int f(int x)\n{\n    if (%s) {\n        g();\n    } else {\n        h();\n    }\n"
            "    return %s;\n}\n")
    stages = sys.modules["stages"]
    for mentions in (("qhca_a(x)", "x"), ("x", "qhca_a(x)")):
        files = {"a.c": "int qhca_a(int x)\n{\n    return x;\n}\n", "b.c": text % mentions}
        patches = [{"subject": "b", "files": ["b.c"]}, {"subject": "a", "files": ["a.c"]}]
        with pytest.raises(make_patches.CutError, match="what is left"):
            stages.Stages(patches, files, braces=True).stage(0)


@pytest.mark.parametrize("rule", [
    {"cut": {"a.c": ["h\\("]}}, {"cut": {"a.c": ['"no such text"']}},
    {"swap": [["a.c", "h(", "i("]]}, {"swap": [["none.c", "f(", "g("]]},
])
def test_a_rule_that_finds_nothing_is_refused(rule):
    """Also one whose text is only in a string, which is no code."""
    files = {"a.c": 'const char *f(void)\n{\n    return "h(";\n}\n'}
    if "swap" in rule:
        files["a.c"] = files["a.c"].replace("h(", "k(")
    patches = [{"subject": "a", "files": ["a.c"]}, {"subject": "later", "files": []} | rule]
    with pytest.raises(make_patches.CutError, match="later: .* has no"):
        sys.modules["stages"].Stages(patches, files)


# -------------------------------------------------------------------------- long

@pytest.mark.long("it builds each patch: half an hour, and the first time an hour")
@pytest.mark.alone("beside guests it takes several times as long")
@pytest.mark.parametrize("project", ["rdma-core", "linux", "qemu"])
def test_the_series_apply_and_build(project):
    for script in ("make-patches", "test-patches"):
        done = subprocess.run([str(TOP / "lab/build" / script), project], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert not done.returncode, done.stdout[-8000:]
