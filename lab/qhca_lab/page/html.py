# SPDX-License-Identifier: GPL-2.0-or-later
"""The page: one file that needs only a browser, and no scripts to be read."""

from __future__ import annotations

import base64
import hashlib
import json
from html import escape
from pathlib import Path

from ..svg import PALETTE, Svg, clean, css
from . import explanations, lanes
from .stories import Recording, Step, Story

HERE = Path(__file__).parent
# At most this many messages are drawn, so that browsers stay fast.
STORIES_MAX = 150
OVERVIEW_W, OVERVIEW_ROW, OVERVIEW_ROWS = 1100.0, 9.0, 9


def text(value: object) -> str:
    """VALUE for the page: no markup, no control characters."""
    return escape(clean(value), quote=True)


def choose(stories: list[Story]) -> list[Story]:
    """The messages to draw: all, or the first, the slowest and those with errors."""
    if len(stories) <= STORIES_MAX:
        return stories
    third = STORIES_MAX // 3
    # Messages come before commands, of which there can be many, too.
    stories = sorted(stories, key=lambda s: (s.kind == "command", s.number))
    chosen = {s.number: s for s in stories[:third]}
    chosen |= {s.number: s for s in [s for s in stories if s.kind == "command"][:third // 2]}
    troubled = [s for s in stories if any(explanations.trouble(step) for step in s.steps)]
    slowest = sorted(stories, key=lambda s: -s.seconds)
    for some in (troubled[:third], slowest):
        for story in some:
            if len(chosen) >= STORIES_MAX:
                break
            chosen[story.number] = story
    return [chosen[n] for n in sorted(chosen)]


def page(recording: Recording) -> str:
    """The document."""
    stories = choose(recording.stories)
    script = (HERE / "page.js").read_text(encoding="utf-8")
    style = _variables() + css().replace("text{", "svg text{", 1) + (
        HERE / "page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(_script(script).encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    names = " and ".join(recording.guest(p) for p in sorted(recording.processes)) or "a lab"
    body = [
        f"<header><h1>What happened in {text(names)}</h1>"
        f"<p>{_count(recording)}</p></header>",
        _notices(recording, stories),
    ]
    if stories:
        # Shown if none is selected; it must come last for that.
        first = next((s for s in stories if s.kind != "command"), stories[0])
        ordered = [*(s for s in stories if s is not first), first]
        body.append(
            f'<div class="all">{_list(recording, stories)}<main id="main">'
            f"{_overview(recording, stories)}"
            + "".join(_story(recording, s, s is first) for s in ordered)
            + f"{_about(recording)}</main></div>"
            '<aside class="card" aria-live="polite" aria-label="about the step"></aside>'
        )
    else:
        body.append(f'<main id="main"><p class="empty">There is no message to show: '
                    f"{recording.events} events, and no arrow connects them.</p>"
                    f"{_about(recording)}</main>")
    return (
        '<!DOCTYPE html>\n<html xmlns="http://www.w3.org/1999/xhtml" lang="en">\n<head>'
        '<meta charset="utf-8"/>'
        f'<meta http-equiv="Content-Security-Policy" content="{text(policy)}"/>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        f"<title>qhca: what happened in {text(names)}</title>"
        f"<style>{style}</style></head>\n<body>"
        '<a class="skip" href="#main">to the messages</a>'
        + "\n".join(body)
        + f"\n<script>{_script(script)}</script></body></html>\n"
    )


def _script(script: str) -> str:
    """Text escaped for the page: neither XML nor HTML finds markup in it."""
    return f"//<![CDATA[\n{script}//]]>"


def _variables() -> str:
    def those(which: int) -> str:
        return "".join(f"--{name}:{both[which]};" for name, both in PALETTE.items())

    return (f":root{{{those(0)}}}@media(prefers-color-scheme:dark){{:root{{{those(1)}}}}}\n")


def _count(recording: Recording) -> str:
    commands = sum(s.kind == "command" for s in recording.stories)
    parts = [f"{len(recording.stories) - commands} messages",
             *([f"{commands} commands"] if commands else []), f"{recording.events} events",
             f"{explanations.duration(recording.end - recording.begin)} of the lab's time"]
    return text(" · ".join(parts))


def _notices(recording: Recording, stories: list[Story]) -> str:
    notes = list(recording.problems)
    if len(stories) < len(recording.stories):
        notes.append(
            f"{len(stories)} of {len(recording.stories)} messages and commands are drawn: the first ones, "
            "those with trouble, and the slowest. For another one: python3 -m qhca_lab.page "
            "trace.json --message N -o story.svg; for all at once open trace.json in Perfetto.")
    return "".join(f'<p class="notice" role="note">{text(n)}</p>' for n in notes)


def _list(recording: Recording, stories: list[Story]) -> str:
    longest = max(s.seconds for s in stories) or 1
    parts = []
    for title, kind in (("Messages", False), ("Commands", True)):
        chosen = [s for s in stories if (s.kind == "command") is kind]
        if chosen:
            items = "".join(_item(recording, s, longest) for s in chosen)
            parts.append(f"<h2>{title}</h2><ol>{items}</ol>")
    return (
        '<nav aria-label="messages">'
        '<input type="search" placeholder="filter ( / )" aria-label="filter the messages"/>'
        f'<div class="lists">{"".join(parts)}</div></nav>'
    )


def _item(recording: Recording, story: Story, longest: float) -> str:
    what, _, where = lanes.heading(recording, story).partition(" · ")
    bad = ' class="bad"' if any(explanations.trouble(step) for step in story.steps) else ""
    share = max(1.0, 100 * story.seconds / longest)
    return (
        f'<li{bad}><a href="#m{story.number}"><span class="t"><b>{text(what)}</b>'
        f"<span>{text(explanations.duration(story.seconds * 1e6))}</span></span>"
        f'<span class="s"><span>{text(where)}</span><span>{story.number}</span></span>'
        f'<span class="bar"><i style="width:{share:.1f}%"></i></span></a></li>'
    )


def _overview(recording: Recording, stories: list[Story]) -> str:
    """All messages along the recording's time, clickable."""
    begin = min(s.begin for s in stories)
    span = max(max(s.steps[-1].ts for s in stories) - begin, 1e-9)
    svg = Svg(OVERVIEW_W, "Overview", "All messages along the time of the recording", bare=True)
    ends = [-1.0] * OVERVIEW_ROWS
    bars = []
    for story in stories:
        x = OVERVIEW_W * (story.begin - begin) / span
        w = max(OVERVIEW_W * story.seconds * 1e6 / span, 2.5)
        row = next((i for i, end in enumerate(ends) if end <= x), None)
        if row is None:
            row = min(range(OVERVIEW_ROWS), key=lambda i: ends[i])
        ends[row] = x + w + 1
        bars.append((x, w, row, story))
    used = max(row for _, _, row, _ in bars) + 1
    for part in range(6):
        x = OVERVIEW_W * part / 5
        svg.line(x, 0, x, OVERVIEW_ROW * used + 4, "s-faint")
        anchor = "start" if not part else "end" if part == 5 else "middle"
        at = explanations.duration(begin - recording.begin + span * part / 5)
        svg.text(x, OVERVIEW_ROW * used + 17, at, "t-soft z11", anchor)
    out = svg.finish(4).rstrip()
    shapes = []
    for x, w, row, story in bars:
        hue = "red" if any(explanations.trouble(s) for s in story.steps) else "blue"
        shapes.append(
            f'<a href="#m{story.number}"><title>{text(lanes.heading(recording, story))}</title>'
            f'<rect class="f-{hue}fill s-{hue}" x="{x:.1f}" y="{2 + OVERVIEW_ROW * row:.1f}" '
            f'width="{min(w, OVERVIEW_W - x + 2):.1f}" height="{OVERVIEW_ROW - 2}" rx="1"/></a>')
    out = out.removesuffix("</svg>") + "".join(shapes) + "</svg>"
    return out.replace("<svg ", '<svg class="overview" ', 1)


def _story(recording: Recording, story: Story, first: bool) -> str:
    name = text(lanes.heading(recording, story))
    heads, body = lanes.draw_parts(recording, story)
    buttons = "".join(
        f'<button type="button" data-do="{do}">{label}</button>'
        for do, label in (("previous", "‹ previous"), ("next", "next ›"), ("out", "−"),
                          ("in", "+"), ("fit", "fit")))
    return (
        f'<section class="story{" first" if first else ""}" id="m{story.number}" '
        f'aria-label="{name}"><h2>{name}</h2>'
        f'<p class="lead">{text(lanes.describe(recording, story))}</p>'
        f'<div class="tools">{buttons}<span class="keys"><kbd>j</kbd> <kbd>k</kbd> step '
        "<kbd>n</kbd> <kbd>p</kbd> message <kbd>+</kbd> <kbd>-</kbd> <kbd>0</kbd> zoom "
        "<kbd>/</kbd> filter</span></div>"
        f'<div class="scroll"><div class="heads">{heads}</div>{body}</div>'
        f"<details><summary>The same in words</summary>"
        f'<ol class="steps">{_steps(recording, story)}</ol></details></section>'
    )


def _steps(recording: Recording, story: Story) -> str:
    out, before = [], None
    indices, left_out = lanes.shown_steps(story)
    for i in indices:
        step = story.steps[i]
        gap = "" if before is None else f"+{explanations.duration(step.ts - story.steps[before].ts)}"
        if before is not None and i != before + 1:
            out.append(f"<li><span></span><p>… {left_out} more steps are left out here</p></li>")
        before = i
        out.append(
            f'<li id="w{story.number}-{i}"><div class="when"><b class="m">'
            f"{step.ts - story.begin:.3f} µs</b>{text(gap)}</div>"
            f"<div>{_one(recording, step)}</div></li>")
    return "".join(out)


def _one(recording: Recording, step: Step) -> str:
    hue = "red" if explanations.trouble(step) else explanations.HUES[step.layer]
    who = f"{recording.guest(step.pid)}, {explanations.LANES[step.layer][0]}"
    thread = recording.threads.get((step.pid, step.tid))
    if thread:
        who += f" ({thread})"
    meaning = explanations.meaning(step)
    fields = "".join(
        f'<dt>{text(k)}</dt><dd class="m">{text(_value(v))}</dd>'
        for k, v in step.args.items() if k != "event")
    fields += f'<dt>event</dt><dd class="m">{text(step.kind)}</dd>'
    return (
        f"<h3>{text(step.name)}</h3>"
        f'<div class="where"><span class="tag" style="background:var(--{hue})"></span>'
        f"{text(who)}</div>" + (f"<p>{text(meaning)}</p>" if meaning else "")
        + f"<dl>{fields}</dl>")


def _value(value: object) -> str:
    shown = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return shown if len(shown) <= 400 else shown[:400] + "…"


def _about(recording: Recording) -> str:
    if not recording.other:
        return ""
    rows = "".join(f'<dt>{text(k)}</dt><dd class="m">{text(_value(v))}</dd>'
                   for k, v in recording.other.items())
    return f"<details><summary>About the recording</summary><dl>{rows}</dl></details>"
