# SPDX-License-Identifier: GPL-2.0-or-later
"""A series of patches as mails: commits of a scratch repository, cover letters."""

from __future__ import annotations

import re
import subprocess
import textwrap
from pathlib import Path


def git(folder: Path, *args: str, **kwargs) -> str:
    """The output of git in @folder; its errors are shown."""
    return subprocess.run(["git", "-C", str(folder), *args], check=True, text=True,
                          stdout=subprocess.PIPE, **kwargs).stdout


def last_author(folder: Path) -> str:
    """NAME <MAIL> of the last commit of @folder."""
    return git(folder, "log", "-1", "--format=%an <%ae>").strip()


def wrap(text: str) -> str:
    """Paragraphs of a mail, wrapped to fit git log in 80 columns."""
    return "\n\n".join(textwrap.fill(p, 72) for p in text.strip().split("\n\n"))


class Repository:
    """A new git repository in @folder with the files in it, tagged "base"."""

    def __init__(self, folder: Path, author: str):
        self.folder, self.author = folder, author
        name, mail = re.fullmatch(r"(.*) <(.*)>", author).groups()
        self.git("init", "-q")
        self.git("config", "user.name", name)
        self.git("config", "user.email", mail)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "base")
        self.git("tag", "base")

    def git(self, *args: str, **kwargs) -> str:
        return git(self.folder, *args, **kwargs)

    def write(self, files: dict[str, str]) -> None:
        """Write @files: {path: text}."""
        for path, text in files.items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_text(text)

    def commit(self, subject: str, body: str) -> None:
        """Commit all changes, if there are any, signed off."""
        self.git("add", "-A")
        if not self.git("diff", "--cached", "--name-only"):
            return
        self.git("commit", "-q", "-s", "-m", subject, "-m", wrap(body))

    def format(self, out: Path, revisions: str, subject: str, cover: str, version: str = "",
               prefix: str = "PATCH") -> None:
        """
        Write the commits @revisions to @out, and remove all other patches there. The cover
        letter names the @version of the project to which they apply: its commit is unknown here.
        """
        out.mkdir(parents=True, exist_ok=True)
        for old in out.glob("*.patch"):
            old.unlink()
        self.git("format-patch", "-q", "--cover-letter",
                 f"--subject-prefix={prefix}", "-o", str(out.resolve()), revisions)
        letter = out / "0000-cover-letter.patch"
        letter.write_text(letter.read_text()
                          .replace("*** SUBJECT HERE ***", subject)
                          .replace("*** BLURB HERE ***", wrap(cover.strip() + (f"\n\nThis applies to {version}." if version else ""))))
