# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/reference/verbs.md: it is complete and correct."""

import re
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
TEXT = (TOP / "docs/reference/verbs.md").read_text()
# of the build root, in which this runs
VERBS_H = Path("/usr/include/infiniband/verbs.h")
KERNEL_H = "linux-headers-*-common/include/rdma/ib_verbs.h"
SUITE = TOP / "build/provider/src/tests"

# What is no request of an adapter: names of numbers, states, units.
OTHER_ENUMS = """
    ibv_gid_type ibv_node_type ibv_transport_type ibv_fork_status ibv_atomic_cap ibv_dm_mask
    ibv_pci_atomic_op_size ibv_mtu ibv_port_state ibv_port_cap_flags ibv_port_cap_flags2
    ibv_xrcd_init_attr_mask ibv_rate ibv_wq_init_attr_mask ibv_wq_state ibv_wq_attr_mask
    ibv_ind_table_init_attr_mask ibv_qp_create_send_ops_flags ibv_qp_open_attr_mask ibv_qp_state
    ibv_query_qp_data_in_order_flags ibv_query_qp_data_in_order_caps ibv_mig_state
    ibv_flow_action_esp_mask ibv_parent_domain_init_attr_mask ibv_counter_description
    ibv_read_counters_flags ibv_values_mask ibv_rereg_mr_err_code ibv_gid_type_sysfs
""".split()
OTHER_VALUE = re.compile(r"_RESERVED\w*$|_FLAGS_SUPPORTED$|^_")
OTHER_FUNCTION = re.compile(r"_str$|^ibv_rate_to_|^ibv_(static_providers|is_qpt_supported)$|^ibv_wc_opcode$")

# Operations of a provider that are not named as their verbs are.
PROVIDER_NAMES = {
    "free_context": "ibv_close_device", "query_rt_values": "ibv_query_rt_values_ex",
    "import_context": "ibv_import_device", "alloc_context": "ibv_open_device",
}
# Of struct verbs_device_ops: how the device is found.
NOT_VERBS = {"alloc_device", "uninit_device", "match_table", "name"}


def rows():
    """(section, name, answer, text) of each line of each table."""
    section = None
    for line in TEXT.splitlines():
        if line.startswith("## "):
            section = line[3:]
        cells = [c.strip() for c in line.strip("|").split("|")]
        if section and line.startswith("| ") and len(cells) == 3 and cells[1]:
            yield section, cells[0].strip("`"), cells[1], cells[2]


ROWS = list(rows())
NAMES = {name: answer for _, name, answer, _ in ROWS}


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)


def kernel_header():
    (path,) = Path("/usr/src").glob(KERNEL_H)
    return without_comments(path.read_text())


def set_operations(pattern):
    """Names of members that the driver or the provider sets."""
    text = "".join(without_comments(p.read_text()) for p in sorted(TOP.glob(pattern)))
    text = text.replace(".QHCA_RESIZE_CQ_OP", ".resize_cq")
    return set(re.findall(r"^\t\.(\w+) = (?:qhca|ibv_cmd|restrack)_\w+,$", text, re.M))


def test_rows_are_well_formed():
    assert len(ROWS) > 400
    assert {answer for _, _, answer, _ in ROWS} == {"yes", "core", "no"}
    assert len(NAMES) == len(ROWS), "a name is listed twice"
    for _, name, answer, text in ROWS:
        assert text, f"{name}: neither a test nor a reason"


def test_all_values_are_listed():
    """Each value of the enumerations of libibverbs that ask an adapter for something."""
    missing = []
    for name, body in re.findall(r"enum (ibv_\w+) \{(.*?)\};",
                                 without_comments(VERBS_H.read_text()), re.S):
        values = re.findall(r"^\s*(\w+)\s*(?:=|,|$)", body, re.M)
        if name not in OTHER_ENUMS:
            missing += [v for v in values if not OTHER_VALUE.search(v) and v not in NAMES]
    assert not missing


def test_all_functions_are_listed():
    text = without_comments(VERBS_H.read_text())
    functions = set(re.findall(r"\b(ibv_\w+)\s*\(", text))
    missing = [f for f in sorted(functions) if not OTHER_FUNCTION.search(f) and f not in NAMES]
    unknown = [n for n in NAMES if n.startswith("ibv_") and n not in functions]
    assert not missing and not unknown


# What updates of Linux 6.12 brought.
LATER_IN_6_12 = {"pre_destroy_cq", "post_destroy_cq"}


def test_kernel_operations():
    """All are listed, and exactly those that the driver sets are marked as supported."""
    body = re.search(r"^struct ib_device_ops \{(.*?)^\};", kernel_header(), re.S | re.M)[1]
    # "setup" is an argument of one of them
    operations = set(re.findall(r"\(\*(\w+)\)\s*\(", body)) - {"setup"}
    assert len(operations) > 100
    table = {n: a for s, n, a, _ in ROWS if s == "Kernel operations" and not n.startswith("IB_")}
    assert operations <= set(table)
    # the headers of an older update do not have all that are listed
    assert set(table) - operations <= LATER_IN_6_12
    have = set_operations("kernel-driver/*/*.c") & operations
    assert {n for n, a in table.items() if a == "yes"} == have


def test_kernel_opcodes():
    """What only kernel users can post."""
    body = re.search(r"^enum ib_wr_opcode \{(.*?)^\};", kernel_header(), re.S | re.M)[1]
    values = set(re.findall(r"\b(IB_WR_\w+)\b", body))
    values = {v for v in values if "RESERVED" not in v and f"IBV{v[2:]}" not in NAMES}
    assert {n for n in NAMES if n.startswith("IB_WR_")} == values


def test_operations_of_the_provider():
    """What the provider sets is listed, as a verb that is supported."""
    verbs = {PROVIDER_NAMES.get(op, f"ibv_{op}")
             for op in set_operations("rdma-core-provider/qhca/qhca.c") - NOT_VERBS}
    assert len(verbs) > 50
    assert not {v for v in verbs if NAMES.get(v) != "yes"}


def test_tests_exist():
    """Each supported row refers to an existing test."""
    missing = []
    for _, name, answer, text in ROWS:
        for where, test in re.findall(r"`(\w+\.py)::(\w+)`", text):
            files = list((TOP / "tests").glob(f"*/{where}"))
            if not any(re.search(rf"^def {test}\(", f.read_text(), re.M) for f in files):
                missing.append(f"{name}: {where}::{test}")
        for path in re.findall(r"`(tests/[\w/.-]+)`", text):
            if not (TOP / path).exists():
                missing.append(f"{name}: {path}")
    assert not missing


def test_files_of_the_suite_exist():
    if not SUITE.exists():
        pytest.skip("rdma-core's source is there after `make provider`")
    named = {file for *_, text in ROWS for file in re.findall(r"`rdma-core: (\w+\.py)`", text)}
    assert named and not {n for n in named if not (SUITE / n).exists()}


def test_what_is_supported_names_a_test():
    """...except for constants, which the row marks."""
    for _, name, answer, text in ROWS:
        if answer == "yes" and not re.search(r"\.py|tests/", text):
            assert name in ("ibv_wc_read_slid", "ibv_wc_read_dlid_path_bits"), name
