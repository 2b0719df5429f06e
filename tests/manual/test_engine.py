# SPDX-License-Identifier: GPL-2.0-or-later
"""
The manual's tables against the engine's: QP transitions, RNR times, default limits, defaults of
registers.  Small C programs include the engine's source files, whose tables are static.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

import contract  # noqa: E402
import manual  # noqa: E402

TOP = Path(__file__).resolve().parents[2]
ENGINE = TOP / "qemu-hw/engine"
TEXT = manual.MANUAL.read_text()
STATES = ["RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"]
TYPES = ["RC", "UC", "UD", "XRC_INI", "XRC_TGT", "RAW"]


def run(tmp_path, source, body):
    """Output of main() { body }, compiled together with an engine source."""
    c = tmp_path / "probe.c"
    c.write_text(f'#include <stdio.h>\n#include "{ENGINE / source}"\nint main(void) {{\n{body}\nreturn 0; }}\n')
    exe = tmp_path / "probe"
    # what main() does not call need not be there
    subprocess.run(
        ["cc", "-std=gnu11", "-w", f"-I{ENGINE}", f"-I{contract.UAPI}", "-o", exe, c,
         "-static", "-Wl,--unresolved-symbols=ignore-all"],
        check=True,
    )
    return subprocess.run([exe], check=True, capture_output=True, text=True).stdout


def section(number):
    return re.search(rf"^#+ {re.escape(number)} .*?(?=^#+ )", TEXT, re.S | re.M)[0]


def engine_transitions(tmp_path):
    """{(from, to, type): (needs, may have)} with attribute names as sets."""
    out = run(tmp_path, "transport/qp_modify.c", """
    for (int a = 0; a <= QHCA_QPS_ERR; a++)
        for (int b = 0; b <= QHCA_QPS_ERR; b++)
            for (int t = 0; t < SERVICES; t++)
                if (transitions[a][b].allowed)
                    printf("%d %d %d %x %x\\n", a, b, t,
                           transitions[a][b].required[t],
                           transitions[a][b].optional[t]);""")
    prefix = "QHCA_QP_M_"
    bits = {
        name.removeprefix(prefix): value
        for name, value in contract.CONST.items()
        if name.startswith(prefix) and name != prefix + "ALL"
    }

    def names(mask):
        return {name for name, bit in bits.items() if int(mask, 16) & bit}

    table = {}
    for line in out.splitlines():
        a, b, t, needs, may = line.split()
        table[STATES[int(a)], STATES[int(b)], TYPES[int(t)]] = (names(needs), names(may))
    return table


def manual_transitions(text):
    def expand(cell, everything):
        return everything if cell in ("any", "all") else cell.split(", ")

    def attributes(cell):
        return {name for name in cell.split(", ") if name}

    table = {}
    for _, header, rows in manual.tables(text):
        if header[:3] != ["From", "To", "Type"]:
            continue
        for start, to, types, needs, may in rows:
            for s in expand(start, STATES):
                for t in expand(types, TYPES):
                    assert (s, to, t) not in table
                    table[s, to, t] = (attributes(needs), attributes(may))
    return table


def reachable(table):
    """Without SQE of what is reliable, a state that it does not have."""
    return {k: v for k, v in table.items() if k[0] != "SQE" or k[2] in ("UC", "UD")}


def test_transitions(tmp_path):
    engine = engine_transitions(tmp_path)
    assert len(engine) > 50
    assert reachable(manual_transitions(section("12.3"))) == reachable(engine)


@pytest.mark.parametrize(
    "old, new",
    [("| RTS | SQD | all |", "| RTS | SQE | all |"), ("SQ_PSN, MAX_RD_ATOMIC |", "SQ_PSN |")],
)
def test_a_wrong_transition_is_found(tmp_path, old, new):
    text = section("12.3")
    assert old in text
    wrong = manual_transitions(text.replace(old, new))
    assert reachable(wrong) != reachable(engine_transitions(tmp_path))


def test_rnr_times(tmp_path):
    out = run(tmp_path, "transport/timer.c", """
    for (int i = 0; i < 32; i++)
        printf("%llu ", (unsigned long long)qhca_rnr_ns(i));""")
    told = {}
    for _, header, rows in manual.tables(section("16.2")):
        if header[0] == "Code":
            told.update(zip(map(int, header[1:]), map(int, rows[0][1:])))
    assert [told[i] * 10000 for i in range(32)] == [int(ns) for ns in out.split()]


def test_default_limits(tmp_path):
    out = run(tmp_path, "base/config.c", """
    struct qhca_config c = { 0 };
    qhca_config_default(&c);
    printf("%u %u %u %u %u %u %u %u %u ", c.max_qp - 2, c.max_cq - 1,
           c.max_srq - 1, c.max_mr - 1, c.max_pd - 1, c.max_eq, c.max_gid,
           c.max_eth_queues, c.num_vectors);
    printf("%u ", QHCA_MAX_XRCD - 1);
    printf("%u %u %u %u %u %u %llu", QHCA_MAX_QP_WR, QHCA_MAX_CQE,
           1u << QHCA_MAX_EQ_SHIFT, QHCA_MAX_SGE, QHCA_MAX_INLINE,
           QHCA_MAX_RD_ATOMIC, (unsigned long long)QHCA_MAX_MR_SIZE);""")
    (_, _, rows), *_ = manual.tables(section("21"))
    told = {what: limit for what, limit in rows}
    qps, cqs = told["QPs, CQs"].split(", ")
    mr = re.fullmatch(r"2\^(\d+) bytes", told["MR"])
    assert [int(n) for n in out.split()] == [
        int(qps), int(cqs), int(told["SRQs"]), int(told["MRs"]), int(told["PDs"]),
        int(told["EQs"]), int(told["GIDs"]), int(told["Ethernet SQs, RQs"].split()[0]),
        int(told["MSI-X vectors"]), int(told["XRC domains"]), int(told["depth of SQ, RQ, SRQ"]),
        int(told["depth of a CQ"]), int(told["depth of an EQ"]), int(told["SGEs of a WQE"]),
        int(told["inline bytes"]), int(told["READs and atomics in flight"]), 1 << int(mr[1]),
    ]


def test_windows(tmp_path):
    """Numbers in the text of section 16.1."""
    out = run(tmp_path, "transport/roce.h", """
    printf("%d %d %d %d %d", QHCA_WINDOW_WQES, QHCA_WINDOW_START, QHCA_WINDOW_PKTS,
           QHCA_WINDOW_LINK, QHCA_ACK_INTERVAL);""")
    wqes, first, most, link, interval = out.split()
    text = section("16.1")
    assert f"At most {wqes} WQEs of an RC QP are under way" in text
    assert f"The window has {first} packets at first and at most {most}" in text
    assert f"one of {most} counts as {link}" in text
    assert re.search(rf"in every {interval}(nd|th|st) packet", text)
