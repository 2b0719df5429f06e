# SPDX-License-Identifier: GPL-2.0-or-later
"""A series of patches as mails: commits of a scratch repository, cover letters."""

from __future__ import annotations

import re
import shutil
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

    def end(self, series: dict) -> None:
        """All commits so far that are in no other series belong to @series."""
        self.git("tag", "end-" + series["name"])

    def format(self, out: Path, all_series: list[dict], version: str) -> None:
        """
        Write each of @all_series to a folder of its own in @out, which has no other series
        then: 01-NAME, in their order. One without commits is left out. Cover letters name
        the @version of the project to which they apply: its commit is unknown here.
        """
        for old in out.glob("[0-9]*-*"):
            shutil.rmtree(old)
        start, number = "base", 0
        for series in all_series:
            end = "end-" + series["name"]
            if not self.git("rev-list", f"{start}..{end}"):
                continue
            number += 1
            self.mails(out / f"{number:02}-{series['name']}", f"{start}..{end}", series, version)
            start = end

    def mails(self, folder: Path, revisions: str, series: dict, version: str) -> None:
        """Write the commits @revisions of @series to @folder."""
        folder.mkdir(parents=True)
        self.git("format-patch", "-q", "--cover-letter", "-o", str(folder.resolve()),
                 f"--subject-prefix={series.get('prefix', 'PATCH')}", revisions)
        letter = folder / "0000-cover-letter.patch"
        cover = f"{series['cover'].strip()}\n\nThis applies to {version}."
        letter.write_text(letter.read_text()
                          .replace("*** SUBJECT HERE ***", series["subject"])
                          .replace("*** BLURB HERE ***", wrap(cover)))
