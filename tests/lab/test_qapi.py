# SPDX-License-Identifier: GPL-2.0-or-later
"""The schema of the QMP commands agrees with the engine, and with itself."""

import re
from pathlib import Path

QEMU_HW = Path(__file__).resolve().parents[2] / "qemu-hw"
SCHEMA = (QEMU_HW / "qhca.json").read_text()


def enum(name: str) -> list[str]:
    """The values of enumeration @name."""
    values = re.search(rf"\{{ 'enum': '{name}',\s*'data': \[([^]]*)\]", SCHEMA)[1]
    return re.findall(r"'([\w-]+)'", values)


def test_the_kinds_of_events_have_the_names_of_the_engine():
    """In the same order: QMP's enumeration is cast to the engine's."""
    header = (QEMU_HW / "engine/observe/breakpoint.h").read_text()
    kinds = re.search(r"enum qhca_stop_on \{(.*?)\};", header, re.S)[1]
    order = re.findall(r"\bQHCA_ON_\w+", kinds)
    names = dict(re.findall(r'\[(QHCA_ON_\w+)\] = "([\w-]+)"',
                            (QEMU_HW / "engine/observe/breakpoint.c").read_text()))
    assert enum("QhcaStopOn") == [names[k] for k in order]


def test_all_of_observability_is_unstable():
    """Commands and events, as QAPI has it and as its documentation says."""
    found = {}
    for definition in re.split(r"\n\n(?=##\n)", SCHEMA):
        if name := re.search(r"^\{ '(?:command|event)': '([\w-]+)'", definition, re.M):
            found[name[1]] = definition
    assert len(found) == len(re.findall(r"'(?:command|event)':", SCHEMA))
    assert not [name for name, text in found.items()
                if "\n# Features:\n#\n# @unstable: " not in text or
                "'features': [ 'unstable' ]" not in text]


def test_all_is_of_one_version():
    assert len(set(re.findall(r"(?i)\bsince:? (\d+\.\d+)", SCHEMA))) == 1
