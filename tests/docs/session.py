# SPDX-License-Identifier: GPL-2.0-or-later
"""A shell that a document's commands are typed into."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from documents import TOP, Block, mismatch


class BlockFailed(Exception):
    """Commands did not do what the document says; the text has the details."""


# A failed command is noted with its status, and the next one is executed: as
# when a user types them. No input, because no user is there.
_RUN = """\
_doc_failed=; trap '_doc_failed+="$? $BASH_COMMAND"$'"'\\n'" ERR
{{ eval "$(cat {file})"; }} </dev/null >{out} 2>&1 {control}>&-
trap - ERR; printf '%s\\0' "$_doc_failed" >&{control}
"""


class Session:
    """One bash, from the top of the checkout, for all blocks of a document."""

    def __init__(self, environment: dict[str, str]):
        self.dir = Path(tempfile.mkdtemp(prefix="qhca-docs-"))
        self._control, theirs = os.pipe()
        self._theirs = theirs
        self._count = 0
        with open(self.dir / "shell", "wb") as log:
            self._shell = subprocess.Popen(
                ["bash", "--noprofile", "--norc"],
                stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=TOP,
                env=dict(os.environ, TERM="dumb", **environment),
                start_new_session=True, pass_fds=[theirs],
            )  # fmt: skip
        os.close(theirs)

    def run(self, block: Block) -> str:
        """Type a block; returns its output. BlockFailed unless it matches."""
        self._count += 1
        file = self.dir / f"{self._count}.sh"
        out = self.dir / f"{self._count}.out"
        file.write_text(block.text + "\n")
        end = time.monotonic() + block.deadline
        line = _RUN.format(file=file, out=out, control=self._theirs)
        try:
            self._shell.stdin.write(line.encode())
            self._shell.stdin.flush()
        except BrokenPipeError:
            raise self._error(block, out, "the shell has ended before it") from None
        answer = b""
        while not answer.endswith(b"\0"):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self._control], [], [], left)[0]:
                raise self._error(block, out, f"not done after {block.deadline:.0f} s")
            data = os.read(self._control, 65536)
            if not data:
                raise self._error(block, out, "the shell ended in it")
            answer += data
        failed = [f.partition(" ") for f in answer[:-1].decode().split("\x1e") if f]
        if len(failed) > 1 and failed[-1][2].startswith('eval "$(cat'):
            failed.pop()  # only repeats how the last command ended
        if [int(status) for status, _, _ in failed] != ([block.status] if block.status else []):
            texts = [f"status {status}: {what}" for status, _, what in failed]
            want = f" where status {block.status} was promised" if block.status else ""
            raise self._error(block, out, ("; ".join(texts) or "all succeeded") + want)
        # What is still running in the background may print it a little later.
        while True:
            busy = self._busy()     # checked first: then its output is complete
            said = out.read_text(errors="replace") if out.exists() else ""
            wrong = self._compare(block, said)
            if wrong is None:
                return said
            if time.monotonic() > end or not busy:
                raise self._error(block, out, wrong)
            time.sleep(0.1)

    @staticmethod
    def _compare(block: Block, said: str) -> str | None:
        """Several output blocks follow each other in the output."""
        if not block.output:
            return None
        if len(block.output) == 1:
            one = block.output[0]
            wrong = mismatch(one.text, said, one.vary)
        else:
            vary = any(one.vary for one in block.output)
            wrong = mismatch("\n".join(one.text for one in block.output), said, vary)
        return wrong and f"the output shown at line {block.output[0].line} differs: {wrong}"

    def _busy(self) -> bool:
        """Does the shell have children?"""
        try:
            tasks = Path(f"/proc/{self._shell.pid}/task/{self._shell.pid}/children")
            return bool(tasks.read_text().strip())
        except OSError:
            return False

    def _error(self, block: Block, out: Path, what: str) -> BlockFailed:
        said = out.read_text(errors="replace") if out.exists() else ""
        return BlockFailed(
            f"{block.where}: {what}\n--- typed\n{block.text}\n--- printed\n{said}"
        )

    def close(self) -> None:
        """End the shell and its background processes."""
        try:
            os.killpg(self._shell.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._shell.wait()
        self._shell.stdin.close()
        os.close(self._control)
        shutil.rmtree(self.dir, ignore_errors=True)
