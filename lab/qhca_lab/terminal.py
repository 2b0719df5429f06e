# SPDX-License-Identifier: GPL-2.0-or-later
"""A terminal that a program types into and reads: a tmux server of its own."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import time

from .errors import LabError

# A server that ends still owns its name for a moment.
_serial = itertools.count()


class Terminal:
    """A window of WIDTH x HEIGHT that runs COMMAND (a shell line); for a with
    statement. ENV is set in it. The exit status is shown as "status N" when
    COMMAND has ended. Errors are LabError."""

    def __init__(self, command: str, width: int, height: int, name: str, env: dict | None = None):
        self.server = f"qhca-{name}-{os.getpid()}-{next(_serial)}"
        self._env = {**os.environ, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", **(env or {})}
        words = [f"{k}={v}" for k, v in (env or {}).items()]
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", str(width), "-y", str(height),
                   "-s", "t", *[w for word in words for w in ("-e", word)],
                   f"{command}; echo status $?; sleep 3600")

    def _tmux(self, *words: str) -> str:
        try:
            done = subprocess.run(["tmux", "-u", "-L", self.server, *words], check=False,
                                  capture_output=True, text=True, env=self._env, timeout=60)
        except FileNotFoundError:
            raise LabError("there is no tmux: make deps installs it") from None
        except subprocess.TimeoutExpired:
            raise LabError(f"tmux {words[0]}: no answer") from None
        if done.returncode:
            raise LabError(f"tmux {words[0]}: {done.stderr.strip()}")
        return done.stdout

    def screen(self, colour: bool = False) -> str:
        """What is seen; with COLOUR the sequences that set it, and blanks at the
        ends of lines, too."""
        return self._tmux("capture-pane", "-p", "-t", "t", *(["-e", "-N"] if colour else []))

    def type(self, *keys: str) -> None:
        """Keys by tmux's names; other words letter by letter."""
        self._tmux("send-keys", "-t", "t", *keys)

    def resize(self, width: int, height: int) -> None:
        self._tmux("resize-window", "-t", "t", "-x", str(width), "-y", str(height))

    def wait(self, pattern: str, seconds: float = 120.0) -> str:
        """Wait until PATTERN appears; returns the screen. Only a slow host takes this long."""
        deadline = time.monotonic() + seconds
        while True:
            text = self.screen()
            if re.search(pattern, text, re.MULTILINE):
                return text
            if time.monotonic() > deadline:
                raise LabError(f"never saw {pattern!r}:\n{text}")
            time.sleep(0.05)

    def pid(self) -> int:
        """The window's process: the shell."""
        return int(self._tmux("list-panes", "-t", "t", "-F", "#{pane_pid}"))

    def close(self) -> None:
        """End the server and everything that runs in it."""
        subprocess.run(["tmux", "-L", self.server, "kill-server"], check=False,
                       capture_output=True)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_exc) -> None:
        self.close()
