# SPDX-License-Identifier: GPL-2.0-or-later
"""One guest's adapter: inspection, breaks and steps over QMP."""

from __future__ import annotations


from qhca_lab import LabError
from qhca_lab.qmp import Qmp, QmpError

from .errors import NoSuchObject, ScopeError, Usage

RUNNING = "running"
AT_BREAK = "debug"
PAUSED = "paused"
PAGE = 256                      # objects per query


class Machine:
    """A guest with its own QMP connection, which close() ends."""

    def __init__(self, guest, timeout: float = 20.0):
        self.guest = guest
        self.name: str = guest.name
        self.timeout = timeout
        self._qmp: Qmp | None = None
        self._schema: list[dict] | None = None
        self._names: dict | None = None

    @property
    def qmp(self) -> Qmp:
        """The connection, opened when it is first needed."""
        if self._qmp is None:
            if not self.guest.alive:
                raise ScopeError(
                    f"QEMU of guest {self.name} has ended",
                    f"see lab/qhca-lab log --qemu {self.name}; "
                    "then lab/qhca-lab down, and up again",
                )
            self._qmp = self.guest.tool_qmp(self.timeout)
        return self._qmp

    def close(self) -> None:
        if self._qmp is not None:
            self._qmp.close()
            self._qmp = None

    @property
    def has_adapter(self) -> bool:
        """Was it started with a qhca?"""
        return self.guest.nic.split(":")[0] == "qhca"

    # ----------------------------------------------------------- the device

    def command(self, name: str, arguments: dict | None = None):
        """Run a QMP command; a rejected one becomes an error with a hint."""
        try:
            return self.qmp.command(name, arguments)
        except QmpError as error:
            raise self._explain(name, error) from error

    def _explain(self, name: str, error: QmpError) -> ScopeError:
        text = error.reply.get("desc", str(error))
        if "no qhca device" in text:
            return ScopeError(
                f"guest {self.name} has no qhca adapter ({self.guest.nic})",
                "choose another guest with --guest",
            )
        if "has not been found" in text:
            return ScopeError(
                f"the QEMU of guest {self.name} is older than this tool: no {name}",
                "make qemu, then lab/qhca-lab down and up again",
            )
        return ScopeError(f"guest {self.name}: {text[:1].lower()}{text[1:]}")

    def state(self) -> str:
        """QEMU's run state: "running", "paused", "debug" at a break, ..."""
        return self.command("query-status")["status"]

    def schema(self) -> list[dict]:
        if self._schema is None:
            self._schema = self.command("query-qmp-schema")
        return self._schema

    def choices(self, command: str, argument: str) -> list[str]:
        """The values that an enumeration argument of a command may have in this QEMU."""
        types = {t["name"]: t for t in self.schema()}
        where = types.get(command)
        if not where:
            return []
        for member in types[where["arg-type"]].get("members", []):
            if member["name"] == argument:
                kind = types[member["type"]]
                return [m["name"] for m in kind.get("members", [])] or kind.get("values", [])
        return []

    def kinds(self) -> list[str]:
        """The kinds of objects this adapter shows."""
        return self.choices("qhca-inspect", "object")

    def names(self) -> dict[str, dict]:
        """The fields, codes and syndromes of a break, for each kind of event."""
        if self._names is None:
            events = self.command("qhca-query-names")["look"]["events"]
            self._names = {e["on"]: e for e in events}
        return self._names

    # ---------------------------------------------------------------- looks

    def look(self, command: str, **arguments) -> dict:
        """A complete inspection result: device, time, look."""
        if "object" in arguments and arguments["object"] not in self.kinds():
            raise Usage(
                f"no kind of object is called {arguments['object']!r}",
                "there are: " + ", ".join(self.kinds()),
            )
        try:
            return self.command(command, arguments)
        except ScopeError as error:
            if "no such object" in str(error):
                raise self._nothing(arguments["object"], arguments.get("number")) from error
            if "only shown all at once" in str(error):
                raise Usage(str(error), f"omit the number: scope {arguments['object']}"
                            ) from error
            if "no such ring" in str(error):
                raise Usage(str(error), "rings are sq and rq of a qp, cq, eq, of an srq "
                            "srq, index and ops, of eth-sq sq, of eth-rq "
                            "rq and data") from error
            raise

    def _nothing(self, kind: str, wanted) -> NoSuchObject:
        try:
            there = [shown_number(kind, n) for n in self.numbers(kind)]
        except LabError:
            there = []
        some = ", ".join(there[:20]) + (", ..." if len(there) > 20 else "")
        return NoSuchObject(
            f"guest {self.name} has no {kind} {shown_number(kind, wanted)}",
            f"there are: {some}" if there else f"it has no {kind} at all now",
        )

    def inspect(self, kind: str, number: int | None = None) -> dict:
        """The inspection result of an object, or of the device."""
        arguments = {} if number is None else {"number": number}
        return self.look("qhca-inspect", object=kind, **arguments)["look"]

    def all(self, kind: str, limit: int | None = None) -> dict:
        """All objects of a kind in short, by several queries: a complete result, with `more`
        true only if LIMIT truncated it."""
        answer, last = None, None
        while True:
            count = PAGE
            if limit is not None:
                count = min(PAGE, limit - (len(answer["look"]["objects"]) if answer else 0))
            arguments = {"object": kind, "count": max(count, 1)}
            if last is not None:
                arguments["from"] = last
            piece = self.look("qhca-inspect", **arguments)
            if answer is None:
                answer = piece
            else:
                answer["look"]["objects"] += piece["look"]["objects"]
                answer["look"]["more"] = piece["look"]["more"]
            objects = answer["look"]["objects"]
            if not piece["look"].get("more") or not piece["look"]["objects"]:
                return answer
            if limit is not None and len(objects) >= limit:
                return answer
            number = number_of(kind, objects[-1])
            if number is None:
                return answer           # nothing to continue from
            last = number + (1 << 8 if kind in KEYED else 1)

    def numbers(self, kind: str) -> list[int]:
        """The numbers of all objects of a kind."""
        objects = self.all(kind)["look"]["objects"]
        found = (number_of(kind, o) for o in objects)
        return [n for n in found if n is not None]

    # ----------------------------------------------------- breaks and steps

    def stop_look(self) -> dict:
        """Why the adapter stopped, with its trail; as look()."""
        return self.command("qhca-query-stop")

    def breaks(self) -> list[dict]:
        return self.command("qhca-break-list")

    def add_break(self, condition: dict) -> dict:
        return self.command("qhca-break-add", {"condition": condition})

    def remove_break(self, number: int) -> None:
        self.command("qhca-break-remove", {"id": number})

    def cancel_step(self) -> None:
        """Cancel the remaining steps. An older QEMU cannot do this; ignore that."""
        try:
            self.qmp.command("qhca-step-cancel")
        except QmpError as error:
            if "has not been found" not in str(error):
                raise self._explain("qhca-step-cancel", error) from error


# Kinds whose numbers are keys: 24 bits of number above 8 of the owner's.
KEYED = ("mr", "mw")

# The name of an object's number in a list.
NUMBERS = ("number", "key", "index", "qpn")


def number_of(kind: str, entry: dict) -> int | None:
    """The number of an object in a list: qpn of a qp, key of an mr, ...; None
    of those that have none."""
    for name in (f"{kind}n", f"{kind.replace('-', '_')}n", *NUMBERS):
        if name in entry:
            return entry[name]
    return None


def shown_number(kind: str, number) -> str:
    if number is None:
        return ""
    return f"0x{number:x}" if kind in KEYED else str(number)


