# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel "debug" has what the guest tests use, so that they run on it, too."""

import re
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
FRAGMENTS = [TOP / "lab/build/kernel.config", TOP / "lab/build/kernel.debug.config"]

# What x86_64_defconfig has.
DEFAULTS = {"CONFIG_BLK_DEV_SD"}
# The option of each module that guest tests load.
MODULES = {
    "dummy": "CONFIG_DUMMY", "fou": "CONFIG_NET_FOU", "ib_srp": "CONFIG_INFINIBAND_SRP",
    "ib_srpt": "CONFIG_INFINIBAND_SRPT", "kunit": "CONFIG_KUNIT", "netconsole": "CONFIG_NETCONSOLE",
    "nfsd": "CONFIG_NFSD", "null_blk": "CONFIG_BLK_DEV_NULL_BLK", "nvme-rdma": "CONFIG_NVME_RDMA",
    "nvmet": "CONFIG_NVME_TARGET", "nvmet-rdma": "CONFIG_NVME_TARGET_RDMA", "rdma_rxe": "CONFIG_RDMA_RXE",
    "rds": "CONFIG_RDS", "rds_rdma": "CONFIG_RDS_RDMA", "rds_tcp": "CONFIG_RDS_TCP",
    "rpcrdma": "CONFIG_SUNRPC_XPRT_RDMA", "sd_mod": "CONFIG_BLK_DEV_SD", "smc": "CONFIG_SMC",
    "smc_diag": "CONFIG_SMC_DIAG", "target_core_file": "CONFIG_TCM_FILEIO",
    "target_core_mod": "CONFIG_TARGET_CORE", "udmabuf": "CONFIG_UDMABUF", "zram": "CONFIG_ZRAM",
}
# The option of each kind of network interface that they add.
KINDS = {
    "bond": "CONFIG_BONDING", "bridge": "CONFIG_BRIDGE", "geneve": "CONFIG_GENEVE",
    "gre": "CONFIG_NET_IPGRE", "gretap": "CONFIG_NET_IPGRE", "ip6gre": "CONFIG_IPV6_GRE",
    "ip6gretap": "CONFIG_IPV6_GRE", "ip6tnl": "CONFIG_IPV6_TUNNEL", "ipip": "CONFIG_NET_IPIP",
    "ipvlan": "CONFIG_IPVLAN", "macsec": "CONFIG_MACSEC", "macvlan": "CONFIG_MACVLAN",
    "sit": "CONFIG_IPV6_SIT", "veth": "CONFIG_VETH", "vlan": "CONFIG_VLAN_8021Q",
    "vrf": "CONFIG_NET_VRF", "vxlan": "CONFIG_VXLAN", "wireguard": "CONFIG_WIREGUARD",
}


def scripts():
    """The texts of the guest tests, and of what they run in guests."""
    folder = TOP / "tests/guest"
    for path in sorted([*folder.glob("*.py"), *(folder / "scripts").iterdir()]):
        yield path.name, path.read_text()


def loaded(text):
    """The modules that TEXT loads."""
    for words in re.findall(r"\bmodprobe((?: +[^\s\"';|&)\\]+)+)", text):
        for word in words.split():
            if word.startswith("-"):
                continue
            # parameters follow, or what a test fills in
            if not re.fullmatch(r"[a-z0-9_-]+,?", word):
                break
            yield word.rstrip(",")


def added(text):
    """The kinds of interface that TEXT adds: "type KIND", or as the tables of the tunnel tests."""
    known = "|".join(sorted(KINDS, key=len, reverse=True))
    return set(re.findall(rf"(?:\btype |\")({known})\b", text))


@pytest.fixture(scope="module")
def options():
    found = set(DEFAULTS)
    for path in FRAGMENTS:
        found.update(re.findall(r"^(CONFIG_\w+)=[ym]$", path.read_text(), re.M))
    return found


def test_modules(options):
    words = {word for _, text in scripts() for word in loaded(text)}
    assert len(words) > 15 and not words - set(MODULES), "their options belong into MODULES"
    assert not {w for w in words if MODULES[w] not in options}


def test_interfaces(options):
    kinds = {kind for _, text in scripts() for kind in added(text)}
    assert {"vxlan", "geneve", "ip6gretap", "ip6tnl", "veth", "bridge"} <= kinds
    assert not {kind for kind in kinds if KINDS[kind] not in options}


def test_patterns():
    assert list(loaded('run("modprobe -a nvmet nvmet-rdma && x"); "modprobe null_blk gb=1"')) == [
        "nvmet", "nvmet-rdma", "null_blk"]
    assert list(loaded('f"modprobe {transport} {parameters}"')) == []
    assert added('"ip link add t0 type gretap local"; (4, "vxlan id 7"); "type ip6tnl mode any"') == {
        "gretap", "vxlan", "ip6tnl"}


def test_no_option_twice():
    """The second value would win silently."""
    for path in FRAGMENTS:
        names = re.findall(r"^(?:# )?(CONFIG_\w+)(?:=| is not set)", path.read_text(), re.M)
        assert sorted(names) == sorted(set(names))
