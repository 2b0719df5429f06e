# SPDX-License-Identifier: GPL-2.0-or-later
"""The contract header in two parts: what user space needs, and what only the kernel needs.

Here the contract is one file. Linux must never change headers in include/uapi, but may
change others. So only what libqhca uses goes there, and what that depends on.
"""

from __future__ import annotations

import re

NAME = re.compile(r"\b(?:QHCA|qhca)_\w+")
BANNER = re.compile(r"^/\* -+ .* -+ \*/$")


def no_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def paragraphs(text: str) -> list[str]:
    """@text split at its blank lines, except those in comments and structures."""
    result, part, depth, comment = [], [], 0, False
    for line in text.split("\n"):
        if not line.strip() and not depth and not comment:
            if part:
                result.append("\n".join(part))
            part = []
            continue
        if BANNER.match(line) and part:
            result.append("\n".join(part))
            part = []
        part.append(line)
        if BANNER.match(line):
            result.append(line)
            part = []
            continue
        rest = re.sub(r"/\*.*?\*/", "", line)
        if comment:
            comment = "*/" not in rest
            continue
        comment = "/*" in rest
        rest = rest.split("/*")[0]
        depth += rest.count("{") - rest.count("}")
    if part:
        result.append("\n".join(part))
    return result


def defined(paragraph: str) -> set[str]:
    code = no_comments(paragraph)
    return {*re.findall(r"^#define\s+(\w+)", code, re.M),
            *re.findall(r"^(?:struct|enum) (\w+) \{", code, re.M),
            *re.findall(r"^\t(QHCA_\w+)\b", code, re.M),
            *re.findall(r"^static inline .*?\b(\w+)\(", code, re.M)}


def split(hw: str, abi: str, users: str) -> tuple[str, str]:
    """(uapi header, the kernel's) of the contract @hw, the ABI @abi and its @users."""
    parts = paragraphs(hw)
    intro, parts = parts[0], parts[1:-1]
    wanted = set(NAME.findall(no_comments(users))) | set(NAME.findall(no_comments(abi)))
    shared: set[int] = set()
    changed = True
    while changed:
        changed = False
        for i, part in enumerate(parts):
            if i not in shared and defined(part) & wanted:
                shared.add(i)
                wanted |= set(NAME.findall(no_comments(part)))
                changed = True

    def chosen(ours) -> str:
        out, banner = [], None
        for i, part in enumerate(parts):
            if part.startswith("#include"):
                continue
            if BANNER.match(part):
                banner = part
            elif ours(i):
                if banner:
                    out.append(banner)
                    banner = None
                out.append(part)
        return "\n\n".join(out)

    rules = re.search(r" \* Rules that hold everywhere:\n(?: \*.*\n)+?(?= \*/)", intro)[0]
    user = abi[:abi.rindex("\n#endif")]
    guard = user.index("#define QHCA_ABI_H\n") + len("#define QHCA_ABI_H\n")
    includes = re.search(r"(?:^#include .*\n)+", user, re.M)
    head = re.sub(r"Host byte order; sizes are multiples of 8\.\n",
                  "Host byte order; sizes are multiples of 8.\n"
                  " * The second half is the interface between libqhca and the device: queues\n"
                  " * and doorbells.\n *\n", user[:guard]).replace("\n *\n */", "\n */")
    head = head.replace(" */\n#ifndef", " *\n" + rules.replace(
        "Rules that hold everywhere", "Rules of the second half") + " */\n#ifndef")
    body = user[includes.end():]
    uapi = head + "\n" + includes[0] + body + "\n\n" + chosen(lambda i: i in shared) + \
        "\n\n#endif /* QHCA_ABI_H */\n"
    kernel = "/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */\n/*\n" \
        " * The contract between the qhca device and its drivers: registers, commands,\n" \
        " * contexts.  What applications share with the device is in rdma/qhca-abi.h, and\n" \
        " * so are the rules of byte order and reserved fields.\n */\n" \
        "#ifndef QHCA_HW_H\n#define QHCA_HW_H\n\n#include <linux/types.h>\n" \
        "#include <rdma/qhca-abi.h>\n\n" + chosen(lambda i: i not in shared) + \
        "\n\n#endif /* QHCA_HW_H */\n"
    return re.sub(r"\n{3,}", "\n\n", uapi), kernel
