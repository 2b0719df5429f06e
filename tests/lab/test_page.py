# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of swim lanes: from a recording to HTML and SVG."""

import base64
import copy
import hashlib
import json
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "lab"))

from qhca_lab import page  # noqa: E402
from qhca_lab.page import explanations, html, lanes  # noqa: E402
from qhca_lab.record.session import merge_folder  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"
XHTML = "{http://www.w3.org/1999/xhtml}"
LAYERS = {1: "provider", 2: "driver", 3: "device"}


class Trace:
    """A recording as `qhca-lab record` writes it."""

    def __init__(self, guests=("guest a 10.99.0.1", "guest b 10.99.0.2")):
        self.events = []
        self.flows = 0
        for pid, name in enumerate(guests, 1):
            self.meta(pid, None, "process_name", name)
            for tid, thread in ((1, "application pingpong 612"), (2, "driver"), (3, "device")):
                self.meta(pid, tid, "thread_name", thread)

    def meta(self, pid, tid, what, name):
        event = {"ph": "M", "pid": pid, "name": what, "args": {"name": name}}
        self.events.append(event | ({"tid": tid} if tid else {}))

    def slice(self, ts, pid, tid, name, kind, **args):
        event = {"ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": 0.1, "name": name,
                 "cat": LAYERS[tid], "args": {"event": kind, **args}}
        self.events.append(event)
        return event

    def flow(self, kind, name, steps, **args):
        self.flows += 1
        for i, step in enumerate(steps):
            event = {"ph": "f" if i == len(steps) - 1 else "t" if i else "s", "cat": kind,
                     "name": name, "id": self.flows, **{k: step[k] for k in ("pid", "tid", "ts")}}
            self.events.append(event | ({"args": args} if not i and args else {}))

    def send(self, t, index, qpn=17, opcode="SEND", packets=1, status="SUCCESS"):
        """A message from a to b, with its acknowledge; PSNs of one message in row."""
        psn = 100 + index * packets
        s = self.slice
        posted = s(t, 1, 1, "WQE written", "wqe", qpn=qpn, index=index, opcode_name=opcode,
                   bytes=512 * packets, wr_id=hex(index))
        rung = s(t + 1, 1, 1, "doorbell SQ", "doorbell", offset="0x0", number=qpn, index=index + 1)
        seen = s(t + 3, 1, 3, "doorbell SQ", "doorbell", doorbell=0, doorbell_name="SQ",
                 number=qpn, index=index + 1)
        hop = 0xB7A8000
        s(t + 3.2, 1, 3, "table hop", "walk_hop", number=qpn, level=0, at=hex(hop), entry="0xb7e9003")
        fetched = s(t + 3.5, 1, 3, "WQE fetched", "wqe", qpn=qpn, index=index, opcode_name=opcode,
                    psn=psn)
        out, into = [], []
        for n in range(packets):
            about = {"psn": psn + n, "opcode_name": "RC SEND_ONLY", "bytes": 574}
            out.append(s(t + 4 + n, 1, 3, "packet out", "tx", qpn=qpn, peer=23, **about))
        for n in range(packets):
            about = {"psn": psn + n, "opcode_name": "RC SEND_ONLY", "bytes": 574}
            into.append(s(t + 30 + packets + n, 2, 3, "packet in", "rx", qpn=23, peer=qpn, **about))
        t += 2 * packets
        done = s(t + 31, 2, 3, "CQE written", "cqe", cqn=39, qpn=23, index=index,
                 status_name=status)
        raised = s(t + 31.2, 2, 3, "MSI-X", "msix", vector=2)
        handled = s(t + 40, 2, 2, "interrupt", "irq", vector=2)
        polled = s(t + 70, 2, 1, "CQE polled", "poll", cqn=39, qpn=23, status_name=status)
        ack = s(t + 32, 2, 3, "packet out", "tx", qpn=23, peer=qpn, psn=psn, opcode_name="RC ACK")
        acked = s(t + 50, 1, 3, "packet in", "rx", qpn=qpn, peer=23, psn=psn, opcode_name="RC ACK")
        mine = s(t + 50.3, 1, 3, "CQE written", "cqe", cqn=36, qpn=qpn, index=index,
                 status_name=status)
        taken = s(t + 60, 1, 1, "CQE polled", "poll", cqn=36, qpn=qpn, status_name=status)
        whose = {"guest": "a", "qpn": qpn, "index": index}
        name = f"qp {qpn} sq {index}"
        way = [posted, rung, seen, fetched, out[0], into[0]] + into[-1:] * (packets > 1)
        self.flow("message", name, [*way, done, raised, handled, polled], **whose)
        self.flow("completion", name, [into[-1], ack, acked, mine, taken], **whose)
        for a, b in list(zip(out, into))[1:]:
            self.flow("packet", f"psn {a['args']['psn']}", [a, b])

    def json(self):
        order = {"M": -1}
        return {"displayTimeUnit": "ns", "otherData": {"problems": [], "command": "pingpong"},
                "traceEvents": sorted(copy.deepcopy(self.events),
                                      key=lambda e: (order.get(e["ph"], 0), e.get("ts", 0)))}


def some(count=3, **more):
    trace = Trace()
    for i in range(count):
        trace.send(1000.0 + 200 * i, i, **more)
    return trace.json()


def parsed(text):
    """The page by an XML parser: it is well-formed, or this fails."""
    return ET.fromstring(text.split("\n", 1)[1] if text.startswith("<!DOCTYPE") else text)


def shown(root):
    return ["".join(t.text or "" if c is t else c.tail or "" for c in t.iter()) if t.find(SVG + "title")
            is not None else (t.text or "") for t in root.iter(SVG + "text")]


class Elements(HTMLParser):
    """The page by an HTML parser: names of elements, and attributes."""

    VOID = {"meta", "input", "br", "hr", "img", "link"}

    def __init__(self, text):
        super().__init__()
        self.open, self.found, self.attributes = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


# -------------------------------------------------------------------- stories


def test_a_story_has_the_whole_way():
    """From the store to the completion on the other side, and back."""
    recording = page.load(some(3))
    assert [s.number for s in recording.stories] == [1, 2, 3]
    story = recording.stories[1]
    kinds = [(s.pid, s.layer, s.kind) for s in story.steps]
    assert kinds == [
        (1, "provider", "wqe"), (1, "provider", "doorbell"), (1, "device", "doorbell"),
        (1, "device", "walk_hop"), (1, "device", "wqe"), (1, "device", "tx"),
        (2, "device", "rx"), (2, "device", "cqe"), (2, "device", "msix"), (2, "device", "tx"),
        (2, "driver", "irq"), (1, "device", "rx"), (1, "device", "cqe"), (1, "provider", "poll"),
        (2, "provider", "poll"),
    ]
    # all steps except the hop, which has no arrow, are connected
    joined = {0}
    for begin, end, _ in story.arrows:
        assert begin < end
        joined |= {begin, end} if begin in joined or end in joined else set()
    assert joined == set(range(15)) - {3}


def test_neighbours_are_kept_apart():
    """Simultaneous events of two messages of one QP are not mixed up."""
    trace = Trace()
    trace.send(1000.0, 0)
    trace.send(1000.4, 1)
    for story in page.load(trace.json()).stories:
        own = {s.args["index"] for s in story.steps if s.kind == "wqe"}
        assert len(own) == 1
        assert {s.args["psn"] for s in story.steps if "psn" in s.args} == {100 + own.pop()}


def test_packets_of_a_long_message_belong_to_it():
    recording = page.load(some(2, packets=5))
    assert len(recording.stories) == 2
    for story in recording.stories:
        assert sum(s.kind == "tx" and s.pid == 1 for s in story.steps) == 5
        assert sum(s.kind == "rx" and s.pid == 2 for s in story.steps) == 5


def test_a_loss_is_told():
    """The lost packet, the wait and the retransmission, in red."""
    trace = Trace()
    s = trace.slice
    posted = s(1.0, 1, 1, "WQE written", "wqe", qpn=17, index=0, opcode_name="SEND", bytes=8)
    fetched = s(2.0, 1, 3, "WQE fetched", "wqe", qpn=17, index=0, opcode_name="SEND", psn=7)
    s(3.0, 1, 3, "injected fault", "fault", action="drop", rule=1, psn=7)
    s(3.1, 1, 3, "packet out", "tx", qpn=17, psn=7, opcode_name="RC SEND_ONLY")
    s(3.2, 1, 3, "timer started", "timer", qpn=17, timer="ack")
    s(900.0, 1, 3, "retransmission", "retransmit", qpn=17, psn=7, reason_name="TIMEOUT")
    again = s(901.0, 1, 3, "packet out", "tx", qpn=17, psn=7, opcode_name="RC SEND_ONLY")
    came = s(910.0, 2, 3, "packet in", "rx", qpn=23, psn=7, opcode_name="RC SEND_ONLY")
    trace.flow("message", "qp 17 sq 0", [posted, fetched, again, came], guest="a", qpn=17, index=0)
    story, = page.load(trace.json()).stories
    assert [x.kind for x in story.steps] == [
        "wqe", "wqe", "fault", "tx", "timer", "retransmit", "tx", "rx"]
    drawn = page.render_message(trace.json())
    seen = shown(parsed(drawn))
    assert "drop · rule 1" in seen and "TIMEOUT · PSN 7" in seen and "897 µs later" in seen
    assert drawn.count("f-redfill s-red") == 2


def test_commands_are_stories():
    """With what the driver did for them before and after, and no work of other tasks."""
    trace = Trace()
    mine = {"task": "pingpong-7"}
    trace.slice(1.0, 1, 2, "EQE taken", "eqe", eqn=1, task="<idle>-0")
    trace.slice(2.0, 1, 2, "buffer table built", "table", form=3, **mine)
    steps = [trace.slice(5.0, 1, 2, "command posted", "aq_cmd", opcode=1, ticket=7, **mine),
             trace.slice(6.0, 1, 3, "admin command", "command", opcode_name="CREATE_QP"),
             trace.slice(9.0, 1, 2, "command done", "aq_done", ticket=7, **mine)]
    trace.slice(8.0, 1, 2, "interrupt", "irq", vector=0, task="<idle>-0")
    trace.slice(8.5, 1, 2, "interrupt", "irq", vector=1, task="<idle>-0")
    trace.slice(9.5, 1, 2, "QP created", "create_qp", qpn=2, task="other-8")
    trace.slice(10.0, 1, 2, "QP created", "create_qp", qpn=3, **mine)
    trace.slice(11.0, 1, 2, "buffer table built", "table", task="other-8")
    trace.slice(90000.0, 1, 2, "QP destroyed", "destroy_qp", qpn=3, **mine)
    trace.flow("command", "command CREATE_QP", steps)
    story, = page.load(trace.json()).stories
    assert story.kind == "command"
    assert [(s.kind, s.ts) for s in story.steps] == [
        ("table", 2.0), ("aq_cmd", 5.0), ("command", 6.0), ("irq", 8.0), ("aq_done", 9.0),
        ("create_qp", 10.0)]
    assert "command CREATE_QP" in "".join(shown(parsed(page.render_message(trace.json()))))


def test_a_doorbell_alone_is_no_story():
    trace = Trace()
    trace.flow("doorbell", "doorbell CQ arm",
               [trace.slice(5.0, 1, 1, "doorbell CQ arm", "doorbell", number=3),
                trace.slice(6.0, 1, 3, "doorbell CQ arm", "doorbell", number=3)])
    assert page.load(trace.json()).stories == []


# ------------------------------------------------------------------- the page


def test_page_is_well_formed_and_alone():
    """XML and HTML parsers accept it, and it loads nothing from elsewhere."""
    text = page.render(some(4))
    root = parsed(text)
    html_elements = Elements(text)
    assert not html_elements.open
    assert root.tag == XHTML + "html"
    assert not {"link", "img", "iframe", "object", "embed", "base"} & set(html_elements.found)
    for name, value in html_elements.attributes:
        assert not name.startswith("on"), name
        if name in ("href", "src"):
            assert value.startswith("#"), value
    assert not re.search(r"@import|url\(|https?://(?!www\.w3\.org/(2000/svg|1999/xhtml))", text)


def test_only_its_own_script_may_run():
    text = page.render(some(1))
    script = re.search(r"<script>(.*?)</script>", text, re.S).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src &#x27;sha256-{digest}&#x27;" in text or f"'sha256-{digest}'" in text
    assert "default-src" in text and text.count("<script") == 1


def test_without_scripts_each_message_can_be_read():
    """Links lead to sections, the first is shown, ids are unique, words are there."""
    root = parsed(page.render(some(4)))
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(ids) == len(set(ids))
    links = {a.get("href") for a in root.iter(XHTML + "a")} - {"#main"}
    assert links == {f"#m{n}" for n in range(1, 5)}
    sections = [s for s in root.iter(XHTML + "section")]
    assert [s.get("id") for s in sections] == ["m2", "m3", "m4", "m1"]
    assert [s for s in sections if "first" in s.get("class")] == [sections[-1]]
    for section in sections:
        assert section.find(f".//{SVG}svg") is not None
        items = section.findall(f".//{XHTML}ol/{XHTML}li")
        assert len(items) == 15
        # each box of the picture has its words
        boxes = {g.get("data-step") for g in section.iter(SVG + "g") if g.get("data-step")}
        assert {f"w{b}" for b in boxes} == {i.get("id") for i in items}


def test_values_appear():
    text = "".join(parsed(page.render(some(2))).itertext())
    for value in ("SEND of 512 bytes", "QP 17 · WQE 1", "0xb7e9003", "PSN 101", "guest a 10.99.0.1", "guest a → guest b",
                  "application pingpong 612", "doorbell SQ", "no system call", "1.000 µs",
                  "pingpong", "2 messages"):  # fmt: skip
        assert value in text, value


@pytest.mark.parametrize("where", ["name", "process", "thread", "args", "all", "key", "flow",
                                   "other", "problem"])
def test_hostile_strings_stay_text(where):
    evil = '"\'><img src=x onerror=alert(1)></title></style></script><script>alert(2)</script>' \
           ']]>&lt;\x00\x1b\u2028\u202e\ud800'
    trace = some(2)
    for event in trace["traceEvents"]:
        if where == "name" and event["ph"] == "X":
            event["name"] = event["args"]["event"] = evil
        elif where in ("process", "thread") and event["name"] == f"{where}_name":
            event["args"]["name"] = evil
        elif where == "args" and event["ph"] == "X":
            event["args"] |= {"opcode_name": evil, "psn": evil, "index": evil, "x": [evil, {}]}
        elif where == "all" and event["ph"] in "Xs":
            event["args"] = {k: [evil, {evil: None}] for k in event.get("args", {})}
            event["cat"] = [evil]
        elif where == "key" and event["ph"] == "X":
            event["args"][evil] = evil
        elif where == "flow" and event["ph"] in "stf":
            event["name"] = evil + str(event["id"])
            event["id"] = evil + str(event["id"])
    if where == "other":
        trace["otherData"][evil] = {evil: evil}
    if where == "problem":
        trace["otherData"]["problems"] = [evil]
    for text in (page.render(trace), page.render_message(trace)):
        parsed(text)
        assert "<script>alert" not in text and "<img" not in text
        assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\u2028\u202e\ud800]", text)
        text.encode()
    assert page.render(trace).count("<script") == 1


def test_the_same_trace_gives_the_same_bytes():
    trace = some(5, packets=3)
    shuffled = trace | {"traceEvents": trace["traceEvents"][:8]
                        + list(reversed(trace["traceEvents"][8:]))}
    assert page.render(trace) == page.render(copy.deepcopy(trace))
    assert page.render_message(trace, 2) == page.render_message(shuffled, 2)


def test_a_big_recording_has_limits_and_says_so():
    """A limited number of messages, and not all steps of a long one."""
    text = page.render(some(html.STORIES_MAX + 40))
    root = parsed(text)
    assert len(list(root.iter(XHTML + "section"))) == html.STORIES_MAX
    assert any(f"{html.STORIES_MAX} of {html.STORIES_MAX + 40} messages and" in "".join(p.itertext())
               for p in root.iter(XHTML + "p"))
    long = parsed(page.render_message(some(1, packets=300)))
    boxes = [g for g in long.iter(SVG + "g") if g.get("data-step")]
    assert len(boxes) == lanes.STEPS_MAX
    left_out = [t for t in shown(long) if "steps are left out here" in t]
    total = len(page.load(some(1, packets=300)).stories[0].steps)
    assert left_out == [f"… {total - lanes.STEPS_MAX} more steps are left out here"]


def test_trouble_is_kept_and_marked():
    """A message that failed is drawn however many others there are, in red."""
    trace = Trace()
    for i in range(html.STORIES_MAX + 60):
        trace.send(1000.0 + 200 * i, i, status="SUCCESS" if i != 120 else "RETRY_EXC_ERR")
    root = parsed(page.render(trace.json()))
    bad = [li for li in root.iter(XHTML + "li") if li.get("class") == "bad"]
    assert len(bad) == 1 and "WQE 120" in "".join(bad[0].itertext())
    drawn = page.render_message(trace.json(), 121)
    assert "f-redfill" in drawn and "RETRY_EXC_ERR" in drawn


def test_problems_of_the_recording_are_told():
    trace = some(1)
    trace["otherData"]["problems"] = ["guest b: 7 events are missing at its end"]
    trace["traceEvents"] += ["x", {"ph": "X", "pid": "1", "tid": 1, "ts": 0},
                             {"ph": "s", "pid": 9, "tid": 9, "ts": 1, "id": 1, "name": "", "cat": ""},
                             {"ph": "X", "pid": 1, "tid": 1, "ts": float("nan"), "name": "n"}]
    notes = ["".join(p.itertext()) for p in parsed(page.render(trace)).iter(XHTML + "p")
             if p.get("class") == "notice"]
    assert "guest b: 7 events are missing at its end" in notes
    assert "3 events of the file make no sense and are left out" in notes
    assert "1 ends of arrows point at no event" in notes


def test_an_empty_recording_has_a_page():
    text = page.render({"traceEvents": []})
    assert "There is no message to show" in "".join(parsed(text).itertext())
    assert not Elements(text).open


def test_a_real_recording(tmp_path):
    """Two guests' pingpong with events: each message has its way in all six lanes."""
    shutil.copytree(Path(__file__).parent / "recording" / "raw", tmp_path / "raw")
    trace = merge_folder(tmp_path, []).trace
    recording = page.load(trace)
    assert recording.problems == []
    messages = [s for s in recording.stories if s.kind == "message"]
    assert len(messages) == 4
    for story in messages:
        sender = story.steps[0].pid
        kinds = [(s.pid == sender, s.layer, s.kind) for s in story.steps]
        for step in ((True, "provider", "wqe"), (True, "provider", "doorbell"),
                     (True, "device", "doorbell"), (True, "device", "qpc"),
                     (True, "device", "wqe"), (True, "device", "tx"), (False, "device", "rx"),
                     (False, "device", "recv_wqe"), (False, "device", "cqe"),
                     (True, "device", "cqe"), (True, "provider", "poll"),
                     (False, "provider", "poll")):  # fmt: skip
            assert step in kinds, (story.number, step)
        assert kinds[0] == (True, "provider", "wqe")
        # two packets of 1024 and 976 bytes, and the response
        sent = [s for s in story.steps if s.kind == "tx" and s.pid == sender]
        assert [s.args["opcode_name"] for s in sent] == ["RC SEND_FIRST", "RC SEND_LAST"]
        assert sum(s.kind == "rx" and s.pid == sender for s in story.steps) == 1
        assert [s.ts for s in story.steps] == sorted(s.ts for s in story.steps)
    created = [s for s in recording.stories if s.title == "command CREATE_QP"]
    assert [[s.kind for s in c.steps] for c in created] == [
        ["table", "table", "aq_cmd", "command", "irq", "aq_done", "create_qp"]] * 2
    text = (tmp_path / "page.html").read_text()
    assert len(list(parsed(text).iter(XHTML + "section"))) == len(recording.stories)


# -------------------------------------------------------------------- the picture


def test_lanes_meet_at_the_wire():
    story = page.load(some(1)).stories[0]
    assert [(lane.pid, lane.layer) for lane in lanes.lanes_of(story)] == [
        (1, "provider"), (1, "driver"), (1, "device"), (-1, "wire"),
        (2, "device"), (2, "driver"), (2, "provider")]


def test_a_message_to_itself_has_no_wire():
    trace = some(1)
    for event in trace["traceEvents"]:
        event["pid"] = 1
    story = page.load(trace).stories[0]
    assert [lane.layer for lane in lanes.lanes_of(story)] == ["provider", "driver", "device"]


def test_boxes_are_in_their_lane_and_in_order():
    recording = page.load(some(1))
    story = recording.stories[0]
    columns = {(lane.pid, lane.layer): lane for lane in lanes.lanes_of(story)}
    root = parsed(page.render_message(some(1)))
    last = 0.0
    for g in (g for g in root.iter(SVG + "g") if g.get("data-step")):
        step = story.steps[int(g.get("data-step").split("-")[1])]
        rect = g.find(SVG + "rect")
        lane = columns[step.pid, step.layer]
        x, y, w = (float(rect.get(k)) for k in ("x", "y", "width"))
        assert lane.x < x and x + w < lane.x + lane.w
        assert y > last
        last = y
        assert g.find(SVG + "title").text.startswith(step.name)


def test_times_are_the_recordings():
    seen = shown(parsed(page.render_message(some(2), 2)))
    for time in ("0.000 µs", "1.000 µs", "3.500 µs", "4.000 µs", "72.000 µs"):
        assert time in seen
    assert any("later" in t for t in seen)  # the wait before the packet arrived


def test_durations_are_said_as_people_do():
    assert [explanations.duration(d) for d in (0, 0.25, 3, 250, 1500, 2e6)] == [
        "0 ns", "250 ns", "3.00 µs", "250 µs", "1.50 ms", "2.00 s"]


# ------------------------------------------------------------------ the command


def run(*words_, **more):
    return subprocess.run([sys.executable, "-m", "qhca_lab.page", *map(str, words_)], text=True,
                          capture_output=True, cwd=TOP / "lab", timeout=120, **more)


def test_command(tmp_path):
    trace = tmp_path / "trace.json"
    trace.write_text(json.dumps(some(3)))
    out = run(trace, "-o", tmp_path / "page.html", "--list")
    assert (out.returncode, out.stderr) == (0, "")
    assert out.stdout.splitlines()[1].split(None, 1)[1].startswith("SEND of 512 bytes · QP 17")
    parsed((tmp_path / "page.html").read_text())
    assert run(trace, "-o", tmp_path / "x.svg", "--message", 3).returncode == 0
    assert "WQE 2" in "".join(shown(parsed((tmp_path / "x.svg").read_text())))


@pytest.mark.parametrize("content,options,message", [
    (None, [], "No such file"),
    ("{", [], "is not JSON"),
    ("[" * 100000, [], "is not JSON"),
    ("3", [], "no list 'traceEvents'"),
    ('{"traceEvents": {}}', [], "no list 'traceEvents'"),
    ('{"traceEvents": []}', ["x.svg"], "no message"),
    (some, ["x.svg", "--message", "9"], "no message 9: there are 3"),
    (some, ["x.html", "--message", "1"], "--message is for an SVG"),
])
def test_what_is_wrong_is_said(tmp_path, content, options, message):
    trace = tmp_path / "trace.json"
    if content is not None:
        trace.write_text(content if isinstance(content, str) else json.dumps(content()))
    output, *more = options or ["page.html"]
    out = run(trace, "-o", tmp_path / output, *more)
    assert out.returncode == 1 and message in out.stderr and "Traceback" not in out.stderr
    assert not (tmp_path / output).exists()


def test_figures_of_the_documents(tmp_path):
    """lab/figures/draw makes those of the timeline from a recording, also without a browser."""
    shutil.copytree(Path(__file__).parent / "recording" / "raw", tmp_path / "run" / "raw")
    merge_folder(tmp_path / "run", [])
    out = subprocess.run(
        [sys.executable, TOP / "lab" / "figures" / "draw", "--recording", tmp_path / "run",
         "--out", tmp_path / "images"],
        env={"PATH": str(tmp_path)}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert out.returncode == 0, out.stderr
    assert "no screenshots: there is no Chromium" in out.stdout
    made = {p.name: parsed(p.read_text()) for p in (tmp_path / "images").iterdir()}
    assert set(made) == {"timeline-message.svg", "timeline-create-qp.svg"}
    assert "CREATE_QP" in "".join(made["timeline-create-qp.svg"].itertext())
