#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Trace the probe points of PROGRAM with gdb: they must match its output.

probes.py PROGRAM
"""

import os
import subprocess
import sys
import tempfile

POINTS = {"wqe": 6, "recv_wqe": 4, "doorbell": 3, "poll": 8}


def main() -> int:
    program = sys.argv[1]
    script = "set confirm off\nset pagination off\nset breakpoint pending off\n"
    for name, count in POINTS.items():
        values = ", ".join(f"$_probe_arg{n}" for n in range(count))
        form = " ".join(["%llu"] * count)
        script += (f"break -probe-stap qhca:{name}\ncommands\nsilent\n"
                   f'printf "saw {name} {form}\\n", {values}\ncontinue\nend\n')
    script += "run\n"
    with tempfile.NamedTemporaryFile("w", suffix=".gdb") as file:
        file.write(script)
        file.flush()
        # A leak checker cannot work below a debugger.
        done = subprocess.run(
            ["gdb", "-nx", "-batch", "-x", file.name, program], text=True, capture_output=True,
            timeout=120, stdin=subprocess.DEVNULL,
            env=dict(os.environ, ASAN_OPTIONS="detect_leaks=0"))
    lines = done.stdout.splitlines()
    saw = [x[4:] for x in lines if x.startswith("saw ")]
    said = [x for x in lines if x.split(" ")[0] in POINTS]
    # The program says what it did after it has done it, in the same order.
    if said and saw == said and "exited normally" in done.stdout:
        print(f"{len(saw)} hits of {len(POINTS)} probe points, all as they should be")
        return 0
    print(f"expected:\n{chr(10).join(said)}\nseen:\n{chr(10).join(saw)}\n"
          f"gdb:\n{done.stdout}\n{done.stderr}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
