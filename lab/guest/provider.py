# SPDX-License-Identifier: GPL-2.0-or-later
"""Install the provider library of the build in this guest.

A separate module, because boot.py calls it: each program that need not start makes the
guest ready sooner.
"""

import glob
import os
import shutil
import sys

import guestenv

LIBRARIES = "/usr/lib/x86_64-linux-gnu/libibverbs"
DRIVERS = "/etc/libibverbs.d"


def install():
    """Programs that use the old library keep it. OSError if there is none to install."""
    built = guestenv.config().get("provider", "/qhca/build/provider")
    found = sorted(glob.glob(f"{built}/libqhca-rdmav*.so"))
    if not found:
        place = built.removeprefix("/qhca/")
        raise FileNotFoundError(f"no libqhca-rdmav*.so in {place}: build it first")
    new = f"{LIBRARIES}/.qhca.new"
    shutil.copyfile(found[0], new)
    os.rename(new, f"{LIBRARIES}/{os.path.basename(found[0])}")
    os.makedirs(DRIVERS, exist_ok=True)
    with open(f"{DRIVERS}/qhca.driver", "w") as f:
        f.write("driver qhca\n")


if __name__ == "__main__":
    try:
        install()
    except OSError as error:
        sys.exit(str(error))
