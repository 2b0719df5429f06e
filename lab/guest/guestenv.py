# SPDX-License-Identifier: GPL-2.0-or-later
"""The environment of commands in a guest: which RDMA device, which GID.

IBDEV   the lab's RDMA device      NETDEV  its network interface
GIDX    index of its GID of type RoCE v2 with the guest's IPv4 address
NODE    the guest's own letter. A variable whose value cannot be found is not set.

The RDMA device is found through the lab's network interface (or the PCI
device both belong to), never by its own name, which udev changes.
"""

import os

NET = "/sys/class/net"
IB = "/sys/class/infiniband"
# Those of the driver, in the order in which they are loaded.
MODULES = ("qhca", "qhca_ib")
# lines KEY=VALUE
SETTINGS = "/run/qhca-lab"
# Larger than any file read here.
MOST = 65536
# Where a GID was found last: {(device, GID): index}.
_found = {}


def read_bytes(path):
    """A small file, or None. Python's file objects are avoided: each command of a guest
    reads some files, and an emulated CPU takes a millisecond for each."""
    try:
        fd = os.open(path, os.O_RDONLY)
        try:
            return os.read(fd, MOST)
        finally:
            os.close(fd)
    except OSError:
        return None


def read(path):
    """The text of a small file, or None."""
    data = read_bytes(path)
    return None if data is None else data.decode().strip()


def from_kernel():
    """The launcher's settings on the kernel's command line (qhcalab.KEY=VALUE)."""
    words = (read("/proc/cmdline") or "").split()
    pairs = (w[8:].split("=", 1) for w in words if w.startswith("qhcalab."))
    return {p[0]: p[1] for p in pairs if len(p) == 2}


def config():
    """The launcher's settings, as boot.py has written them."""
    pairs = (line.split("=", 1) for line in (read(SETTINGS) or "").splitlines())
    return {p[0]: p[1] for p in pairs if len(p) == 2}


def write(settings):
    """Keep SETTINGS for config() and for shell scripts."""
    with open(f"{SETTINGS}.new", "w") as f:
        f.writelines(f"{key}={value}\n" for key, value in settings.items())
    os.rename(f"{SETTINGS}.new", SETTINGS)


def entries(path):
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


def netdev(settings):
    """The interface with the lab's MAC address."""
    for name in entries(NET):
        # An upper device, a VLAN or a bridge, may have the same address.
        if (os.path.exists(f"{NET}/{name}/device")
                and read(f"{NET}/{name}/address") == settings.get("mac")):
            return name
    return None


def rdma_device(interface):
    """The RDMA device whose port sits on INTERFACE."""
    for name in entries(IB):
        if read(f"{IB}/{name}/ports/1/gid_attrs/ndevs/0") == interface:
            return name
    # No GID yet: look for the same PCI device.
    parent = os.path.realpath(f"{NET}/{interface}/device")
    for name in entries(IB):
        if os.path.realpath(f"{IB}/{name}/device") == parent:
            return name
    return None


def gid_index(device, address):
    """Index of DEVICE's RoCE v2 GID for the IPv4 ADDRESS, or None."""
    octets = [int(x) for x in address.split(".")]
    want = "0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x" % tuple(octets)
    port = f"{IB}/{device}/ports/1"

    def there(index, gid):
        return gid == want and read(f"{port}/gid_attrs/types/{index}") == "RoCE v2"

    index = _found.get((device, want))
    if index is not None and there(index, read(f"{port}/gids/{index}")):
        return index
    for index in range(256):
        gid = read(f"{port}/gids/{index}")
        if gid is None:
            break
        if there(index, gid):
            _found[device, want] = index
            return index
    return None


def environment(user="root"):
    """Environment variables for a command run by USER."""
    home = "/root" if user == "root" else "/tmp"
    env = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/qhca/lab/bin",
        "HOME": home,
        "USER": user,
        "LOGNAME": user,
        # Of C.UTF-8 this alone differs from C. Every program that starts would load
        # the other eleven categories, a fifth of a shell's start.
        "LC_CTYPE": "C.UTF-8",
        "SHELL": "/bin/bash",
    }
    settings = config()
    if "name" in settings:
        env["NODE"] = settings["name"]
    interface = netdev(settings)
    if interface:
        env["NETDEV"] = interface
        device = rdma_device(interface)
        if device:
            env["IBDEV"] = device
            index = gid_index(device, settings.get("ip", "0.0.0.0"))
            if index is not None:
                env["GIDX"] = str(index)
    return env


if __name__ == "__main__":
    for key, value in environment().items():
        print(f"{key}={value}")
