# SPDX-License-Identifier: GPL-2.0-or-later
"""What the terminal interface shows, without the terminal: a view of each guest
with one object chosen, its rings, a walk, completions, and what happened."""

from __future__ import annotations

import ipaddress

from qhca_lab import LabError

from ..machine import AT_BREAK, RUNNING, Machine, number_of, shown_number
from ..errors import ScopeError

HISTORY = 1000                  # events kept of a guest
AROUND = 24                     # entries read from a ring
OBJECTS = 256                   # objects listed of a kind
WRAP = 1 << 32


class View:
    """One guest. refresh() reads everything from the device."""

    def __init__(self, machine: Machine):
        self.machine = machine
        self.name = machine.name
        self.state: str | None = None
        self.stop: dict = {}
        self.kind = "qp"
        self.number: int | None = None
        self.objects: list[dict] = []
        self.look: dict = {}
        self.before: dict = {}          # the inspection result at the previous stop
        self.rings: dict[str, dict] = {}
        self.ring: str | None = None    # the one with the cursor
        self.cursors: dict[str, int] = {}
        self.led: set[str] = set()      # rings whose cursor a stop has set
        self.walk: dict = {}
        self.completions: list[dict] = []
        self.history: list[dict] = []
        self.fresh = 0                  # how many of history came with the last stop
        self.trouble = ""
        self.follow = True
        self.stepping = ""
        self.lost = False               # QEMU has ended: the last contents stay
        self._seen_stop: tuple | None = None

    @property
    def stopped(self) -> bool:
        return self.state is not None and self.state != RUNNING

    @property
    def at_break(self) -> bool:
        return self.state == AT_BREAK

    # ------------------------------------------------------------ refreshing

    def refresh(self) -> None:
        """Refresh; an error goes to `trouble`, and the old contents stay."""
        if self.lost:
            return
        try:
            self._refresh()
            self.trouble = ""
        except LabError as error:
            self.trouble = str(error)
            if "QEMU closed" in self.trouble:
                self.lose(error)

    def lose(self, error: LabError) -> None:
        """QEMU has ended: nothing more can be queried."""
        self.lost, self.state = True, None
        self.trouble = f"guest {self.name}: {error}"

    def _refresh(self) -> None:
        self.state = self.machine.state()
        self.stop = self.machine.stop_look()["look"]
        if self.stop.get("stopped") and self.state != RUNNING:
            self._take_stop()
        elif self.state == RUNNING:     # show the part that changes
            for name in self.led:
                self.cursors.pop(name, None)
            self.led.clear()
        listed = self.machine.all(self.kind, OBJECTS)["look"]["objects"] \
            if self.kind != "device" else []
        self.objects = listed
        there = [number_of(self.kind, o) for o in listed]
        if self.number not in there and self.kind != "device":
            self.number = next((n for n in reversed(there) if n is not None), None)
            self.rings, self.cursors, self.walk = {}, {}, {}
        self._look()

    def _take_stop(self) -> None:
        """A new stop: its events, and the objects to which they belong."""
        event = self.stop.get("event", {})
        key = (event.get("time"), event.get("kind"), self.stop.get("why"), self.stop.get("on"))
        if key == self._seen_stop:
            return
        self._seen_stop = key
        self.stepping = ""
        self.before = self.look
        trail = self.stop.get("trail", [])
        self.fresh = len(trail)
        self.history = (self.history + trail)[-HISTORY:]
        if not self.follow:
            return
        for seen in (event, *reversed(trail)):
            qpn = seen.get("qpn")
            if qpn is None and seen.get("doorbell_name") in ("SQ", "RQ"):
                qpn = seen.get("number")
            if qpn is not None:
                self.choose("qp", qpn)
                break
        for seen in reversed(trail):
            if seen.get("kind") == "wqe" and seen.get("qpn") == self.number:
                self.cursors["sq"] = seen["index"]
                self.led.add("sq")
                break
            if seen.get("kind") == "doorbell" and seen.get("number") == self.number:
                self.cursors.pop("sq", None)    # where the device will continue
                break

    def choose(self, kind: str, number: int | None) -> None:
        """The object that is shown; refresh() looks at it."""
        if (kind, number) != (self.kind, self.number):
            self.kind, self.number = kind, number
            self.rings, self.cursors, self.walk, self.before = {}, {}, {}, {}
            self.ring = None

    def _look(self) -> None:
        if self.kind == "device":
            self.look = self.machine.inspect("device")
        elif self.number is None:
            self.look, self.rings, self.completions, self.walk = {}, {}, [], {}
            return
        elif self.kind in ("mcg",):
            self.look = {}
        else:
            self.look = self.machine.inspect(self.kind, self.number)
        self._look_rings()
        self._look_walk()
        self._look_completions()

    def _look_rings(self) -> None:
        names = self.machine.choices("qhca-ring", "ring")
        if self.rings:
            names = [n for n in names if n in self.rings]
        found = {}
        for name in names:
            arguments = {"object": self.kind, "number": self.number, "ring": name}
            cursor = self.cursors.get(name)
            if cursor is not None:
                start = cursor - AROUND // 3
                arguments.update(index=max(start, 0) if cursor < WRAP // 2 else start,
                                 count=AROUND)
            try:
                found[name] = self.machine.look("qhca-ring", **arguments)["look"]
            except ScopeError:
                continue
        self.rings = found
        if self.ring not in found:
            self.ring = next(iter(found), None)

    def cursor(self, name: str) -> int | None:
        """The entry of ring NAME that is chosen: by the user, by the last WQE,
        or the one that is next."""
        look = self.rings.get(name)
        if not look:
            return None
        chosen = self.cursors.get(name)
        return chosen if chosen is not None else look.get("next", look.get("consumer"))

    def move(self, by: int) -> None:
        """Move the cursor of the ring; refresh() looks there."""
        if self.ring in self.rings:
            at = self.cursor(self.ring) or 0
            self.led.discard(self.ring)
            self.cursors[self.ring] = min(max(at + by, 0), WRAP - 1)

    def _look_walk(self) -> None:
        at = self.cursor(self.ring) if self.ring else None
        self.walk = {}
        if at is None:
            return
        try:
            self.walk = self.machine.look(
                "qhca-walk", object=self.kind, number=self.number, ring=self.ring, index=at,
                entries=6, bytes=64)["look"]
        except ScopeError as error:
            self.walk = {"error": str(error)}

    def _look_completions(self) -> None:
        """The CQs of the object: a QP's two, or itself."""
        context = self.look.get("context", {})
        if self.kind == "cq":
            numbers = [self.number]
        else:
            numbers = [context[k] for k in ("send_cqn", "recv_cqn", "cqn") if context.get(k)]
        self.completions = []
        for number in dict.fromkeys(numbers):
            try:
                self.completions.append(self.machine.look(
                    "qhca-ring", object="cq", number=number)["look"])
            except ScopeError:
                continue

    # --------------------------------------------------------------- asking

    def last(self, kind: str) -> dict | None:
        """The last event of a kind, of the chosen object if there is one."""
        found = None
        for event in reversed(self.history):
            if event.get("kind") == kind:
                found = found or event
                if self.number in (event.get("qpn"), event.get("number")):
                    return event
        return found

    @property
    def title(self) -> str:
        if self.kind == "device":
            return "device"
        return f"{self.kind} {shown_number(self.kind, self.number)}"


class Model:
    """The views of all adapters of a lab, one of them chosen."""

    def __init__(self, scope, guest: str | None = None):
        self.scope = scope
        self.views = {m.name: View(m) for m in scope.adapters if m.guest.alive}
        if not self.views:
            raise ScopeError(f"no guest of lab {scope.lab.name} with a qhca runs")
        first = scope[guest] if guest else scope.default()
        if first.name not in self.views:
            raise ScopeError(f"guest {first.name} has no qhca that runs",
                             "choose one of " + ", ".join(self.views))
        self.chosen = first.name
        self.own: list[tuple[str, int]] = []    # breaks that were set here
        self.touched = False                    # has this program changed the guests' state?

    @property
    def view(self) -> View:
        return self.views[self.chosen]

    @property
    def peer(self) -> View | None:
        """The next guest, shown beside this one."""
        names = list(self.views)
        other = names[(names.index(self.chosen) + 1) % len(names)]
        return self.views[other] if other != self.chosen else None

    def other_guest(self) -> None:
        """Choose the next guest."""
        if self.peer:
            self.chosen = self.peer.name

    def refresh(self) -> None:
        self.view.refresh()
        peer = self.peer
        if peer:
            self._follow_connection(self.view, peer)
            peer.refresh()
        for view in self.views.values():
            if view not in (self.view, peer):
                view.refresh()
        self._forget_gone()

    def _forget_gone(self) -> None:
        """Breaks with --once that were met, or that another tool removed, are no longer ours; but
        a guest may still be stopped at them."""
        for guest in {guest for guest, _ in self.own}:
            view = self.views[guest]
            try:
                there = set() if view.lost else {info["id"] for info in view.machine.breaks()}
            except LabError:
                continue
            left = [(g, n) for g, n in self.own if g != guest or n in there]
            self.touched = self.touched or left != self.own
            self.own = left

    def _follow_connection(self, view: View, peer: View) -> None:
        """Show at the peer the QP to which this one's QP is connected."""
        context = view.look.get("context", {})
        if view.kind != "qp" or not peer.follow or not context.get("dest_qpn"):
            return
        gid = context.get("av", {}).get("dgid", "")
        try:
            address = ipaddress.ip_address(gid)
        except ValueError:
            return
        address = getattr(address, "ipv4_mapped", None) or address
        ours = (peer.machine.guest.ip, peer.machine.guest.ip6)
        if any(address == ipaddress.ip_address(ip) for ip in ours):
            peer.choose("qp", context["dest_qpn"])

    # ------------------------------------------------------------- commands

    def step(self, on: str, count: int = 1) -> None:
        self.touched = True
        self.view.stepping = f"{count} {on}" if count > 1 else on
        try:
            self.scope.step(self.view.machine, on, count)
        except LabError:
            self.view.stepping = ""
            raise

    def cancel(self) -> None:
        """Cancel a step that does not end."""
        self.view.machine.cancel_step()
        self.view.stepping = ""

    def go(self) -> list[str]:
        self.touched = True
        for view in self.views.values():
            view.stepping = ""
        return self.scope.go()

    def freeze(self) -> list[str]:
        self.touched = True
        return self.scope.freeze()

    def add_break(self, condition: dict) -> dict:
        info = self.scope.add_break(self.view.machine, condition)
        self.own.append((self.view.name, info["id"]))
        return info

    def breaks(self) -> list[tuple[str, dict]]:
        return [(v.name, info) for v in self.views.values() for info in v.machine.breaks()]

    def remove_break(self, guest: str, number: int) -> None:
        self.views[guest].machine.remove_break(number)
        self.own = [own for own in self.own if own != (guest, number)]

    def leaves_nothing(self) -> bool:
        """Can the interface quit without a question: has it no breaks, and has it
        stopped no guest?"""
        return not self.own and not (
            self.touched and any(v.stopped for v in self.views.values()))

    def report(self) -> dict:
        """What the cleanup must undo when this program dies."""
        return {"breaks": self.own, "touched": self.touched}


def undo(scope, report: dict) -> None:
    """Remove the breaks of a report(), and resume the guests if their state was changed or
    one of the breaks was met. Everything is tried; the first error is raised at the end."""
    errors = []
    met = report["touched"]
    for guest, number in report["breaks"]:
        try:
            machine = scope[guest]
            if not machine.guest.alive:
                continue
            look = machine.stop_look()["look"]
            met = met or (look.get("stopped") and look.get("id") == number)
            if any(info["id"] == number for info in machine.breaks()):
                machine.remove_break(number)
        except LabError as error:
            errors.append(error)
    if met:
        try:
            scope.go()
        except LabError as error:
            errors.append(error)
    if errors:
        raise errors[0]
