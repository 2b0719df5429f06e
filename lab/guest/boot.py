# SPDX-License-Identifier: GPL-2.0-or-later
"""Sets the guest's adapter up.

The agent runs this once: at boot, or when a saved guest is resumed. The last
line of its log is "ready" or "failed: WHY"; lab/qhca-lab waits for it. Starting
a program takes an emulated CPU a while, so this is Python, which the agent has
loaded, and starts few programs.
"""

import ctypes
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
import time

import driver
import guestenv
import provider
import sections

PATH = "/usr/sbin:/usr/bin:/sbin:/bin:/qhca/lab/bin"
LOG = "/run/qhca-boot.log"
# Seconds until the interface and its GID must be there, on a slow host.
PATIENCE = 60
# As lab/build/image/qhca-mount mounts them at a boot; a restored guest has no time for a shell.
FOLDERS = ("lab", "build", "share")
NINE_P = "trans=virtio,version=9p2000.L,msize=262144,cache=none"
BOOT_ID = "/proc/sys/kernel/random/boot_id"
RNDADDENTROPY = 0x40085203
RNDRESEEDCRNG = 0x5207
MS_BIND = 4096


class Failed(Exception):
    """The reason why the guest is unusable."""


def mount(source, target, kind=None, flags=0, data=None):
    """mount(2), unless it is mounted already."""
    libc = ctypes.CDLL(None, use_errno=True)
    words = [w.encode() if w else None for w in (source, target, kind)]
    if libc.mount(*words, ctypes.c_ulong(flags), data.encode() if data else None):
        code = ctypes.get_errno()
        raise Failed(f"mount {target}: {os.strerror(code)}")


def mount_kernel(kind, target):
    """Mount a pseudo file system."""
    os.makedirs(target, exist_ok=True)
    if not os.path.ismount(target):
        mount("none", target, kind)


def command(*words):
    """Run a program; its output is in the log."""
    env = {"PATH": PATH, "LC_CTYPE": "C.UTF-8"}
    done = subprocess.run(words, env=env, stdout=1, stderr=1, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise Failed(f"{' '.join(words)}: status {done.returncode}")


def wait(question, complaint):
    """Wait until QUESTION() returns a true value, and return that."""
    deadline = time.monotonic() + PATIENCE
    while True:
        answer = question()
        if answer is not None:
            return answer
        if time.monotonic() > deadline:
            raise Failed(complaint)
        time.sleep(0.05)


def set_up(settings):
    """Load the driver and set the addresses of the adapter of a guest with SETTINGS."""
    socket.sethostname(settings["name"])
    # In a copy of the saved guest this is done, and the modules below are loaded.
    if guestenv.read("/sys/class/net/lo/operstate") == "down":
        command("ip", "link", "set", "lo", "up")
    mount_kernel("debugfs", "/sys/kernel/debug")
    mount_kernel("tracefs", "/sys/kernel/tracing")
    mount_kernel("hugetlbfs", "/dev/hugepages")
    os.makedirs("/dev/mqueue", exist_ok=True)
    nic = settings["nic"]
    if nic == "none":
        return
    if nic == "qhca":
        provider.install()
        driver.load(settings.get("load", "").split(","))
    elif nic == "rxe":
        command("modprobe", "-a", "virtio_net", "rdma_rxe")
    else:
        raise Failed(f"unknown adapter {nic!r}")
    dev = wait(
        lambda: guestenv.netdev(settings), f"no network interface with address {settings['mac']}"
    )
    command("qhca-net", dev)
    if nic == "rxe":
        command("rdma", "link", "add", "rxe0", "type", "rxe", "netdev", dev)
    modules = [m for m in ("ib_uverbs", "rdma_ucm") if not os.path.exists(f"/sys/module/{m}")]
    if modules:
        command("modprobe", "-q", "-a", *modules)
    # The address must be in the GID table before a program connects.
    wait(
        lambda: guestenv.environment().get("GIDX"),
        f"{dev} has no RoCE v2 GID for {settings['ip']}",
    )
    # A debugger that attaches to the stopped guest cannot ask for it.
    sections.show()


def main():
    """Set the guest up by /run/qhca-lab, or the kernel's command line."""
    try:
        if not os.path.exists(guestenv.SETTINGS):
            guestenv.write(guestenv.from_kernel())
        set_up(guestenv.config())
    except (Failed, OSError, KeyError) as error:
        print(f"failed: {error}", flush=True)
        return 1
    print("ready", flush=True)
    return 0


def reseed(data):
    """Mix DATA into the kernel's random number generator, and use it now."""
    with open("/dev/urandom", "wb", buffering=0) as f:
        fcntl.ioctl(f, RNDADDENTROPY, struct.pack("ii", 8 * len(data), len(data)) + data)
        fcntl.ioctl(f, RNDRESEEDCRNG)


def new_boot_id():
    """Programs take machines with the same boot id for the same host, and try shared
    memory between them. The kernel offers no way to change it."""
    shutil.copyfile("/proc/sys/kernel/random/uuid", "/run/boot_id")
    mount("/run/boot_id", BOOT_ID, flags=MS_BIND)


def resume(request):
    """Give a copy of the saved guest an identity of its own (lab/qhca_lab/saved_guest.py).

    Copies of the same memory have the same clock, boot id and state of the random
    number generator. So REQUEST has the host's time in seconds ("now"),
    random bytes in hexadecimal ("entropy"), and the guest's "settings".
    """
    time.clock_settime(time.CLOCK_REALTIME, request["now"])
    try:
        reseed(bytes.fromhex(request["entropy"]))
        new_boot_id()
        for folder in FOLDERS:
            mount(f"qhca-{folder}", f"/qhca/{folder}", "9p", data=NINE_P)
        guestenv.write(request["settings"])
    except (Failed, OSError, KeyError) as error:
        print(f"failed: {error}", flush=True)
        return 1
    return main()


def background(function, *arguments):
    """Call FUNCTION in a child process that writes to the log; its process id."""
    log = os.open(LOG, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setsid()
            os.dup2(log, 1)
            os.dup2(log, 2)
            status = function(*arguments)
        except BaseException as error:  # the host must learn of any error
            print(f"failed: {error!r}", flush=True)
        finally:
            os._exit(status)
    os.close(log)
    return pid


if __name__ == "__main__":
    sys.exit(main())
