# SPDX-License-Identifier: GPL-2.0-or-later
"""The screen and the keys of the terminal interface."""

from __future__ import annotations

import contextlib
import curses
import os
import shlex
import signal
import sys
import time

from qhca_lab import LabError
from qhca_lab.qmp import wait_any

from .. import render
from ..style import ASCII, terminal_encoding
from ..errors import ScopeError, Usage
from . import panes
from .cleanup import Cleanup
from .model import Model, View, undo

try:
    import urwid
except ImportError:
    urwid = None

HELP = """\
 s  step one WQE              c    resume all guests
 p  step one packet           f    freeze all guests, or resume them
 d  step to a doorbell        b    set a break:  doorbell --qpn 17
 w  step one table walk       B    list breaks
 e  step one completion       D    delete breaks
 h  step one hop of a walk    Esc  cancel a step that does not end
 S  step EVENT COUNT

 Tab     the other guest      1-8  choose a pane (small window: a page)
 o       show: qp 17          Up Down PgUp PgDn Home End
 [ ]     kind of object         in objects: another one
 v       guests side by side    in a ring: another entry; the table
 F       follow stops, or         shows the path to it
         stay with the object   elsewhere: scroll
 r       refresh              q    quit    ?  this help

 Values that changed since the last stop are marked. In a ring C> is the
 consumer, N> the next to be fetched, P> the producer."""

STEPS = {"s": "wqe", "p": "packet", "d": "doorbell", "w": "walk", "h": "hop", "e": "cqe"}

# name, foreground and background for 16 colours, for none
PALETTE = [
    ("title", "white,bold", "default", "bold"),
    ("key", "dark cyan", "default", ""),
    ("dim", "dark gray", "default", ""),
    ("good", "dark green", "default", ""),
    ("warn", "brown", "default", "bold"),
    ("bad", "light red", "default", "bold"),
    ("path", "yellow", "default", "bold"),
    ("number", "default", "default", ""),
    ("name", "white", "default", "bold"),
    ("bar", "black", "light gray", "standout"),
    ("bar-break", "black", "brown", "standout,bold"),
    ("pane", "dark cyan,underline", "default", "underline"),
    ("pane-on", "black", "dark cyan", "standout"),
    ("cursor", "black", "light gray", "standout"),
    ("keys", "dark gray", "default", ""),
    ("ask", "white,bold", "dark blue", "standout"),
]

PANES = ["objects", "context", "sq", "rq", "table", "packets", "events", "completions"]
TITLES = {"context": "context", "table": "buffer table", "packets": "packets",
          "events": "events (us)", "completions": "completions"}
SMALLEST = (60, 15)
ROOMY = (120, 34)
WIDEST = 190


def check_terminal() -> None:
    """Report what is missing for a terminal interface."""
    if urwid is None:
        raise ScopeError("the terminal interface needs python3-urwid",
                         "make deps installs it; the commands work without it: scope --help")
    commands = "commands work anywhere: scope ls, scope qp, scope --help"
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Usage("the terminal interface needs a terminal", commands)
    term = os.environ.get("TERM", "")
    if term in ("", "dumb", "unknown"):
        raise Usage(f"the terminal interface cannot draw on TERM={term or '(nothing)'}", commands)


def text_row(line: render.Line, width: int, unicode: bool, on: str | None = None):
    """A line as a canvas row of WIDTH; ON is the attribute of a chosen row."""
    markup = []
    for kind, text in line:
        if text:
            text = text if unicode else text.translate(ASCII)
            markup.append((on or kind, text))
    widget = urwid.Text(markup or "", wrap="clip")
    return urwid.AttrMap(widget, on).render((width,)) if on else widget.render((width,))


def make_pane_class():
    """The class, created if urwid is available."""

    class Pane(urwid.Widget):
        """A title and lines that can be scrolled. LINES is called with width
        and height for (lines, chosen row or None)."""

        _sizing = frozenset([urwid.BOX])
        _selectable = False

        def __init__(self, app, name: str, title, lines):
            super().__init__()
            self.app, self.name, self.title, self.lines = app, name, title, lines
            self.top: int | None = None         # None: at the place of interest
            self.rows = self.columns = 1

        def scroll(self, by: int) -> None:
            self.top = max(0, (self.top or 0) + by)
            self._invalidate()

        def render(self, size, focus=False):
            width, height = size
            app = self.app
            on = app.focus == self.name
            head = f" {app.number_of(self.name)}{self.title()} "
            rows = [text_row([("pane-on" if on else "pane", f"{head:<{width}}")], width,
                             app.unicode)]
            self.columns, self.rows = width, max(0, height - 1)
            room = self.rows
            lines, row = self.lines(width, room)
            last = max(0, len(lines) - room)
            top = self.top
            if top is None:
                if self.name in ("events", "packets", "completions"):
                    top = last
                else:
                    top = 0
            if row is not None and (self.top is None or not top <= row < top + room):
                top = min(max(0, row - room // 2), last)
            top = min(top, last)
            if self.top is not None:
                self.top = top
            for n, line in enumerate(lines[top : top + room], top):
                rows.append(text_row(line, width, app.unicode, "cursor" if n == row else None))
            while len(rows) < height:
                rows.append(urwid.SolidCanvas(" ", width, 1))
            return urwid.CanvasCombine([(r, None, False) for r in rows[:height]])

    return Pane


class App:
    """The interface of a Model until the user quits."""

    def __init__(self, model: Model, cleanup: Cleanup | None, colour: str = "auto",
                 page: str | None = None):
        self.model = model
        self.cleanup = cleanup
        self.colours = self._colours(colour)
        urwid.set_encoding(terminal_encoding())
        self.unicode = urwid.supports_unicode()
        self.focus = page or "context"
        self.side_by_side: bool | None = None       # None: depends on the size of the window
        self.message: tuple[str, str] = ("keys", "")
        self.layout: str = ""
        self.panes: dict[str, object] = {}
        self.failure: Exception | None = None
        self._pane_class = make_pane_class()
        self._size = (0, 0)
        self._prompt = None
        self._live = 0.0                # when to refresh a running guest
        self._watched: dict[str, object] = {}
        screen = urwid.raw_display.Screen()
        # Bold black, which urwid takes for grey, is black on most of today's.
        modern = ("xterm", "screen", "tmux", "rxvt", "alacritty", "foot", "kitty", "konsole")
        term = os.environ.get("TERM", "")
        screen.set_terminal_properties(
            colors=self.colours,
            bright_is_bold=not (term.startswith(modern) or "256color" in term))
        palette = [(n, f, b, mono) for n, f, b, mono in PALETTE]
        self.header = urwid.Text("", wrap="clip")
        self.footer = urwid.Text("", wrap="clip")
        self.frame = urwid.Frame(urwid.SolidFill(" "), header=urwid.AttrMap(self.header, "bar"),
                                 footer=self.footer)
        self.loop = urwid.MainLoop(self.frame, palette, screen=screen, handle_mouse=False,
                                   unhandled_input=self.key, input_filter=self.filter)

    @staticmethod
    def _colours(colour: str) -> int:
        """The number of colours: 1 if there should be none, or the terminal has none."""
        if colour == "never" or (colour == "auto" and "NO_COLOR" in os.environ):
            return 1
        if colour == "auto":
            try:
                curses.setupterm()
                if curses.tigetnum("colors") < 8:
                    return 1
            except curses.error:
                pass                # nothing is known of it: most have colours
        return 16

    # ---------------------------------------------------------------- screen

    def number_of(self, name: str) -> str:
        return f"{PANES.index(name) + 1} " if name in PANES else ""

    def _make(self, name: str, view_of, title=None):
        """A pane; VIEW_OF returns its view when it is drawn."""
        def both(lines):
            return lambda width, _height: (lines(view_of(), width), None)

        source = {
            "objects": lambda width, _height: panes.object_lines(view_of(), width),
            "context": both(panes.context_lines),
            "sq": lambda width, _height: self._ring(view_of(), 0, width),
            "rq": lambda width, _height: self._ring(view_of(), 1, width),
            "table": lambda width, height: (panes.table_lines(view_of(), width, height), None),
            "packets": both(panes.packet_lines),
            "events": both(panes.event_lines),
            "completions": both(panes.completion_lines),
            "stop": both(panes.stop_lines),
        }[name.removeprefix("peer-")]
        bare = name.removeprefix("peer-")

        def words():
            view = view_of()
            if title:
                return title(view)
            if bare == "objects":
                return f"{view.kind} ({len(view.objects)})"
            if bare in ("sq", "rq"):
                ring = self._ring_name(view, 0 if bare == "sq" else 1)
                return f"{view.title} {ring or 'ring'}"
            return TITLES.get(bare, bare) + (f" of {view.title}" if bare == "context" else "")

        pane = self._pane_class(self, name, words, source)
        self.panes[name] = pane
        return pane

    @staticmethod
    def _ring_name(view: View, at: int) -> str | None:
        names = list(view.rings)
        return names[at] if at < len(names) else None

    def _ring(self, view: View, at: int, width: int):
        name = self._ring_name(view, at)
        if name is None:
            return [[("dim", "none")]], None
        lines, row = panes.ring_lines(view, name, width)
        return lines, row if name == view.ring else None

    def build(self, size: tuple[int, int]) -> None:
        """Lay the panes out for a window of SIZE."""
        width, height = size
        self.panes = {}
        view, peer = (lambda: self.model.view), (lambda: self.model.peer or self.model.view)
        stop = self._make("stop", view, lambda v: f"guest {v.name}")
        wide = width >= WIDEST if self.side_by_side is None else self.side_by_side
        if width < SMALLEST[0] or height < SMALLEST[1]:
            self.layout = "tiny"
            body = urwid.Filler(urwid.Text(
                f"{width}x{height} is too small a window for this: 80x24 is enough"))
        elif width < ROOMY[0] or height < ROOMY[1]:
            self.layout = "small"
            if wide and self.model.peer and width >= 76:
                self.layout = "small pair"
                body = urwid.Columns([
                    self._column([(4, stop), self._make("sq", view), self._make("packets", view)]),
                    self._column([(4, self._make("peer-stop", peer, lambda v: f"guest {v.name}")),
                                  self._make("peer-sq", peer), self._make("peer-rq", peer),
                                  self._make("peer-packets", peer)]),
                ], dividechars=1)
            else:
                if self.focus not in PANES:
                    self.focus = "context"
                tabs = urwid.Text([
                    part for n, name in enumerate(PANES, 1) for part in (
                        ("pane-on" if name == self.focus else "key", f"{n} {name}"), " ")
                ], wrap="clip")
                body = urwid.Pile([("pack", tabs), (4, stop), self._make(self.focus, view)])
        else:
            self.layout = "roomy"
            left = self._column([(max(6, height // 4), self._make("objects", view)),
                                 self._make("context", view)])
            middle = self._column([("weight", 5, self._make("sq", view)),
                                   ("weight", 3, self._make("rq", view)),
                                   ("weight", 4, self._make("completions", view))])
            right = self._column([("weight", 5, self._make("table", view)),
                                  ("weight", 5, self._make("events", view)),
                                  ("weight", 2, self._make("packets", view))])
            body = self._column([(4, stop), urwid.Columns(
                [("weight", 4, left), ("weight", 5, middle), ("weight", 5, right)],
                dividechars=1)])
            if wide and self.model.peer:
                self.layout = "pair"
                body = urwid.Columns([("weight", 14, body), ("weight", 4, self._column([
                    (4, self._make("peer-stop", peer, lambda v: f"guest {v.name}, peer")),
                    ("weight", 3, self._make("peer-context", peer)),
                    ("weight", 3, self._make("peer-sq", peer)),
                    ("weight", 3, self._make("peer-rq", peer)),
                    ("weight", 3, self._make("peer-completions", peer)),
                ]))], dividechars=1)
        self.frame.body = body

    @staticmethod
    def _column(parts):
        return urwid.Pile(parts)

    def draw(self) -> None:
        """Redraw everything from the model."""
        bar = [("bar", f" qhca-scope  lab {self.model.scope.lab.name}  ")]
        for name, view in self.model.views.items():
            kind, words = panes.state_words(view)
            mark = "*" if name == self.model.chosen else " "
            bar.append(("bar-break" if view.at_break else "bar", f" {mark}{name}: {words} "))
        bar.append(("bar", f"   {self.model.view.title}"))
        if self.model.own:
            bar.append(("bar", f"   {len(self.model.own)} break(s) set here"))
        self.header.set_text(bar)
        if self._prompt is None:
            kind, text = self.message
            keys = ("s WQE  p packet  d doorbell  w walk  e CQE   c go on  f freeze  "
                    "b break  ? keys")
            if self._size[0] > 110:
                keys += "  Tab other guest  o object  v side by side  q quit"
            self.footer.set_text([(kind, text)] if text else [("keys", keys)])
        size = self.loop.screen.get_cols_rows()
        if size != self._size or not self.panes:
            self._size = size
            self.build(size)
        for pane in self.panes.values():
            pane._invalidate()

    def rebuild(self) -> None:
        self._size = (0, 0)
        self.draw()

    # ------------------------------------------------------------------ keys

    def filter(self, keys, _raw):
        """A resize is not a key: lay out again."""
        if "window resize" in keys:
            self.rebuild()
        return keys

    def key(self, key) -> bool:
        if not isinstance(key, str):
            return False
        self.message = ("keys", "")
        try:
            self._key(key)
        except LabError as error:
            hint = getattr(error, "hint", "")
            self.message = ("bad", f"{error}" + (f"; {hint}" if hint else ""))
        if self.cleanup:
            self.cleanup.tell(self.model.report())
        self.draw()
        return True

    def _key(self, key: str) -> None:
        model, view = self.model, self.model.view
        if key in STEPS:
            model.step(STEPS[key])
            self._settle()
            model.refresh()
        elif key == "S":
            self.ask("step: ", "wqe 5", self._step_words)
        elif key == "c":
            gone = model.go()
            self.message = ("good", f"{', '.join(gone)} resumed" if gone else "all guests were running")
            model.refresh()
        elif key == "f":
            if any(v.stopped for v in model.views.values()):
                model.go()
            else:
                model.freeze()
            model.refresh()
        elif key == "b":
            known = view.title.split()
            words = f"doorbell --qpn {known[1]}" if known[0] == "qp" and len(known) > 1 \
                else "doorbell"
            self.ask("break: ", words, self._break_words)
        elif key == "B":
            self._list_breaks()
        elif key == "D":
            self.ask("delete break (number, or all): ", "all", self._delete_words)
        elif key == "o":
            self.ask("show: ", view.title, self._show_words)
        elif key in ("[", "]"):
            kinds = [k for k in view.machine.kinds() if k not in ("device", "mcg")]
            at = kinds.index(view.kind) if view.kind in kinds else 0
            view.choose(kinds[(at + (1 if key == "]" else -1)) % len(kinds)], None)
            view.follow = False
            model.refresh()
        elif key == "tab":
            model.other_guest()
            model.refresh()
        elif key == "v":
            now = self.layout in ("pair", "small pair")
            self.side_by_side = not now
            self.rebuild()
        elif key == "F":
            view.follow = not view.follow
            self.message = ("good", "the object changes with the stop" if view.follow
                            else f"{view.title} stays, whatever stops")
        elif key in "12345678":
            self.focus = PANES[int(key) - 1]
            rings = list(view.rings)
            if self.focus in ("sq", "rq"):
                at = 0 if self.focus == "sq" else 1
                if at < len(rings):
                    view.ring = rings[at]
                    model.refresh()
            self.rebuild()
        elif key in ("up", "down", "page up", "page down", "home", "end"):
            self._move(key)
        elif key == "esc":
            if view.stepping:
                model.cancel()
                self.message = ("warn", "the remaining steps are cancelled")
        elif key == "r":
            model.refresh()
        elif key == "?":
            self.popup("keys", HELP)
        elif key in ("q", "Q"):
            self._quit()
        else:
            self.message = ("warn", f"{key} does nothing: ? shows the keys")

    def _move(self, key: str) -> None:
        view, pane = self.model.view, self.panes.get(self.focus)
        rows = getattr(pane, "rows", 10)
        by = {"up": -1, "down": 1, "page up": -rows, "page down": rows, "home": -(1 << 31),
              "end": 1 << 31}[key]
        if self.focus == "objects":
            numbers = [n for n in (panes.number_of(view.kind, o) for o in view.objects)
                       if n is not None]
            if numbers:
                at = numbers.index(view.number) if view.number in numbers else 0
                view.choose(view.kind, numbers[min(max(at + by, 0), len(numbers) - 1)])
                view.follow = False
                self.model.refresh()
        elif self.focus in ("sq", "rq") and view.ring and key not in ("home", "end"):
            view.move(by)
            self.model.refresh()
        elif pane is not None:
            if pane.top is None and self.focus in ("events", "packets", "completions"):
                lines, _ = pane.lines(pane.columns, rows)
                pane.top = max(0, len(lines) - rows)
            pane.scroll(by)

    # --------------------------------------------------------------- prompts

    def ask(self, label: str, text: str, then) -> None:
        """A line to edit in the last row; Enter calls THEN with it, Esc leaves,
        Ctrl-U clears it."""
        edit = urwid.Edit(("ask", label), text)

        class Asking(urwid.WidgetWrap):
            def keypress(inner, size, key):
                if key == "enter":
                    self._answered(then, edit.edit_text)
                elif key == "esc":
                    self._answered(None, "")
                elif key == "ctrl u":
                    edit.set_edit_text("")
                else:
                    return inner._w.keypress(size, key)
                return None

        self._prompt = Asking(edit)
        self.frame.footer = self._prompt
        self.frame.focus_position = "footer"

    def _answered(self, then, text: str) -> None:
        self._prompt = None
        self.frame.footer = self.footer
        self.frame.focus_position = "body"
        self.message = ("keys", "")
        try:
            if then and text.strip():
                then(shlex.split(text))
        except (LabError, ValueError) as error:
            hint = getattr(error, "hint", "")
            self.message = ("bad", f"{error}" + (f"; {hint}" if hint else ""))
        if self.cleanup:
            self.cleanup.tell(self.model.report())
        self.draw()

    def _step_words(self, words: list[str]) -> None:
        from ..parsing import number

        count = number(words[1], 32) if len(words) > 1 else 1
        self.model.step(words[0], count)
        self._settle()
        self.model.refresh()

    def _break_words(self, words: list[str]) -> None:
        """What follows scope break on the command line."""
        from .. import cli

        top, _ = cli.parser()
        said: list[str] = []
        parse = top._subparsers._group_actions[0].choices["break"]
        parse.error = lambda text: said.append(text) or (_ for _ in ()).throw(Usage(text))
        args = parse.parse_args(words)
        if args.wait is not None:
            raise Usage("the interface always waits for a break: omit --wait")
        machine = self.model.view.machine
        info = self.model.add_break(cli.condition_of(args, machine))
        self.message = ("good", cli.break_text(machine, info))
        self.model.refresh()

    def _delete_words(self, words: list[str]) -> None:
        from ..parsing import number

        there = self.model.breaks()
        if words == ["all"]:
            gone = [(g, i["id"]) for g, i in there]
        else:
            wanted = [number(w, 32) for w in words]
            gone = [(g, i["id"]) for g, i in there
                    if i["id"] in wanted and g == self.model.chosen]
            if len(gone) != len(set(wanted)):
                raise ScopeError(f"guest {self.model.chosen} has no such break", "B lists them")
        for guest, one in gone:
            self.model.remove_break(guest, one)
        self.message = ("good", f"{len(gone)} removed")

    def _show_words(self, words: list[str]) -> None:
        from ..parsing import number

        view = self.model.view
        if words[0] not in view.machine.kinds() or words[0] == "mcg":
            raise Usage(f"no kind of object is called {words[0]!r}",
                        ", ".join(view.machine.kinds()))
        wanted = number(words[1], 32) if len(words) > 1 else None
        if wanted is not None:
            view.machine.inspect(words[0], wanted)      # reports what is wrong
        view.choose(words[0], wanted)
        view.follow = False
        self.model.refresh()

    def _list_breaks(self) -> None:
        from ..cli import condition_text

        lines = []
        for guest, info in self.model.breaks():
            names = self.model.views[guest].machine.names()
            own = "  set here" if (guest, info["id"]) in self.model.own else ""
            lines.append(f" guest {guest}  break {info['id']}  met {info['hits']} times  "
                         f"{condition_text(info['condition'], names)}{own}")
        self.popup("breaks", "\n".join(lines) or " no break is set")

    def popup(self, title: str, text: str, keys: dict | None = None) -> None:
        """A box on top until a key; KEYS has functions for some."""
        if not self.unicode:
            text = text.translate(ASCII)
        below = self.frame

        class Box(urwid.WidgetWrap):
            def selectable(inner):
                return True

            def keypress(inner, size, key):
                if keys is not None and key not in keys:
                    return None
                self.loop.widget = below
                if keys:
                    keys[key]()
                return None

        lines = text.split("\n")
        content = urwid.Filler(urwid.Text(text, wrap="clip"), "top")
        box = Box(urwid.LineBox(content, title=title) if self.unicode else urwid.LineBox(
            content, title=title, tlcorner="+", tline="-", lline="|", trcorner="+",
            blcorner="+", rline="|", bline="-", brcorner="+"))
        self.loop.widget = urwid.Overlay(
            box, below, "center", min(max(len(x) for x in lines) + 3, max(20, self._size[0])),
            "middle", min(len(lines) + 2, max(5, self._size[1])))

    # ------------------------------------------------------------- the end

    def _quit(self) -> None:
        if self.model.leaves_nothing():
            self._leave(undo_all=True)
            return
        some = f"{len(self.model.own)} break(s) were set here" if self.model.own \
            else "guests are stopped"
        self.popup("quit", f" {some}.\n\n y  remove them and resume all guests\n"
                   " k  keep all as it is\n n  stay here", {
                       "y": lambda: self._leave(True), "enter": lambda: self._leave(True),
                       "k": lambda: self._leave(False), "n": lambda: None, "esc": lambda: None})

    def _leave(self, undo_all: bool) -> None:
        self.undo_all = undo_all
        raise urwid.ExitMainLoop

    undo_all = True

    # --------------------------------------------------------------- running

    def events(self) -> bool:
        """Process QEMU's new events; did anything change?"""
        changed = False
        for view in self.model.views.values():
            if view.lost:
                self._forget(view)
                continue
            try:
                names = {e["event"] for e in view.machine.qmp.poll_events()}
            except LabError as error:
                view.lose(error)
                self._forget(view)
                changed = True
                continue
            if "QHCA_STOP" in names:
                view.stepping = ""
                with contextlib.suppress(LabError):
                    self.model.scope.peers_follow(view.machine)
            changed = changed or bool(names)
        return changed

    def _settle(self, seconds: float = 0.2) -> None:
        """Most steps end at once: wait for that, so that nothing flickers."""
        view, deadline = self.model.view, time.monotonic() + seconds
        self.events()
        while view.stepping and not view.lost:
            left = deadline - time.monotonic()
            if left <= 0 or not wait_any([view.machine.qmp], left):
                return
            self.events()

    def _forget(self, view: View) -> None:
        """Do not wait for a connection that has ended: it is always ready."""
        if view.name in self._watched:
            self.loop.event_loop.remove_watch_file(self._watched.pop(view.name))

    def tick(self, loop, _data) -> None:
        """Four times a second: events; once a second, or less often where that
        takes long: all of a guest that runs."""
        changed = self.events()
        now = time.monotonic()
        live = now >= self._live and any(not v.stopped for v in self.model.views.values())
        if changed or live:
            self.model.refresh()
            self.draw()
            took = time.monotonic() - now
            self._live = now + took + max(1.0, 4 * took)
        loop.set_alarm_in(0.25, self.tick)

    def run(self) -> None:
        for view in self.model.views.values():
            view.machine.qmp.poll_events()      # connected before looking
        self.model.refresh()
        self.draw()

        def told():
            if self.events():
                self.model.refresh()
                self.draw()

        for view in self.model.views.values():
            self._watched[view.name] = self.loop.event_loop.watch_file(
                view.machine.qmp.fileno(), told)

        def ended(*_):
            raise urwid.ExitMainLoop

        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, ended)
        self.loop.set_alarm_in(0.25, self.tick)
        self.loop.run()


def run(scope, guest: str | None, colour: str = "auto", page: str | None = None) -> int:
    """Open the interface; returns the exit status."""
    check_terminal()
    if page is not None and page not in PANES:
        raise Usage(f"no page is called {page!r}", "there are: " + ", ".join(PANES))
    for machine in scope.machines.values():
        machine.timeout = 5.0
    model = Model(scope, guest)
    cleanup = Cleanup(scope.lab)
    app = None
    try:
        app = App(model, cleanup, colour, page)
        app.run()
    finally:
        try:
            if app is None or app.undo_all:
                undo(scope, model.report())
        finally:
            cleanup.bye()
    return 0
