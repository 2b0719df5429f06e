# SPDX-License-Identifier: GPL-2.0-or-later
"""How selftests in one guest run commands in the other: by ssh over one connection.

Put into drivers/net/lib/py of the selftests, as REMOTE_TYPE=lab; REMOTE_ARGS is the
host. Unlike in their remote_ssh.py, ending a command here ends it there, too: over
a shared connection it would keep running, and keep the caller waiting. Both guests
have the tests at the same path, so there is nothing to copy.
"""

import os
import secrets
import subprocess


class Command(subprocess.Popen):
    """A command in the other guest; its standard streams are pipes."""

    def __init__(self, host, comm, **kwargs):
        self._host = host
        self._mark = f"/run/qhca-ssh/command-{secrets.token_hex(8)}"
        # The shell leads a process group of its own.
        super().__init__(["ssh", "-q", host, f"echo $$ >{self._mark}; {comm}"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)

    def terminate(self):
        """End the command and everything that it has started; ssh ends with it. By SIGKILL,
        because otherwise iperf3 may hang waiting for its threads."""
        subprocess.run(["ssh", "-q", self._host, f"kill -KILL -- -$(cat {self._mark})"], check=False)


class Remote:
    def __init__(self, name, dir_path):
        self.name = name
        self.dir_path = dir_path

    def cmd(self, comm, **kwargs):
        return Command(self.name, comm, **kwargs)

    def deploy(self, what):
        return what if os.path.isabs(what) else os.path.abspath(f"{self.dir_path}/{what}")
