# SPDX-License-Identifier: GPL-2.0-or-later
"""What an application sees when its adapter is reset, unbound or dies.

Run in a guest: python3 gone.py NAME
"""

import errno
import os
import select
import subprocess
import sys
import time

import rc
from rc import LOCAL, OK, PACE, PD, REMOTE, SGE, e, main, memory, pair
from pyverbs.cq import CQEX, CompChannel, CqInitAttrEx, PollCqAttr
from pyverbs.device import DM, AllocDmAttr
from pyverbs.mr import DMMR
from pyverbs.pyverbs_error import PyverbsRDMAError

DEVICE = os.path.realpath(f"/sys/class/infiniband/{os.environ['IBDEV']}/device")
PCI = os.path.basename(DEVICE)
GONE = (errno.EIO, errno.ENODEV)


def store(path, text):
    with open(path, "w") as file:
        file.write(text)


def event_files():
    """The files of this process from which asynchronous events are read."""
    found = set()
    for fd in os.listdir("/proc/self/fd"):
        try:
            if "infinibandevent" in os.readlink(f"/proc/self/fd/{fd}"):
                found.add(int(fd))
        except FileNotFoundError:
            pass
    return found


def events(ctx, fd, seconds=20 * PACE):
    """Types of the asynchronous events until DEVICE_FATAL."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    seen = []
    limit = time.monotonic() + seconds
    while e.IBV_EVENT_DEVICE_FATAL not in seen:
        if not poll.poll(max(0, limit - time.monotonic()) * 1000):
            raise TimeoutError(f"no fatal event, only {seen}")
        event = ctx.get_async_event()
        seen.append(event.event_type)
        event.ack()
    return seen


def answer(function, *args, **kwargs):
    """The errno that @function fails with, 0 when it does not."""
    try:
        function(*args, **kwargs)
    except PyverbsRDMAError as problem:
        return problem.error_code
    return 0


class Application:
    """One of everything, in use."""

    def __init__(self):
        before = event_files()
        self.a, self.b = pair()
        self.event_fd, = event_files() - before
        self.ctx, self.pd = self.a.ctx, self.a.pd
        self.near = memory(self.pd, 4096, LOCAL)
        self.far = memory(self.pd, 4096, REMOTE)
        self.dm = DM(self.ctx, AllocDmAttr(8192, 0, 0))
        self.dm.copy_to_dm(0, b"mine", 4)
        self.region = DMMR(self.pd, 8192, REMOTE | e.IBV_ACCESS_ZERO_BASED, self.dm, 0)
        for number in (1, 2, 3):
            self.b.receive(SGE(self.far.buf, 100, self.far.lkey), number)
        assert self.a.write(SGE(self.near.buf, 4, self.near.lkey), 0, self.region.rkey) == OK

    def events(self):
        return events(self.ctx, self.event_fd)

    def sees_it_go(self):
        """Every verb fails, without a hang or other effects; everything can be closed."""
        ctx, pd = self.ctx, self.pd
        assert answer(PD, ctx) in GONE
        assert answer(rc.MR, pd, 4096, LOCAL) in GONE
        assert answer(rc.CQ, ctx, 10) in GONE
        assert answer(DM, ctx, AllocDmAttr(4096, 0, 0)) in GONE
        assert answer(rc.End, ctx, pd) in GONE
        assert answer(self.a.qp.query, e.IBV_QP_STATE) in GONE
        # Nor do those without a system call.
        for _ in range(5):
            assert answer(self.a.post, e.IBV_WR_RDMA_WRITE,
                          [SGE(self.near.buf, 4, self.near.lkey)],
                          self.far.buf, self.far.rkey) in GONE
        assert answer(self.b.receive, SGE(self.far.buf, 100, self.far.lkey)) in GONE
        assert answer(self.a.cq.poll, 1) in GONE
        assert answer(self.a.cq.req_notify) in GONE
        # The memory of the device is still there to be written to.
        self.dm.copy_to_dm(0, b"four", 4)
        self.dm.copy_from_dm(0, 4)

    def close(self):
        for thing in (self.region, self.dm, self.near, self.far, self.a, self.b):
            thing.close()
        self.pd.close()
        self.ctx.close()


def flushed(end, count):
    """Pending receives are returned, in order."""
    for number in range(1, count + 1):
        wc = end.completion()
        assert (wc.wr_id, wc.status) == (number, e.IBV_WC_WR_FLUSH_ERR), (wc.wr_id, wc.status)


def works_again():
    """A new context, after a short wait."""
    limit = time.monotonic() + 40 * PACE
    # libibverbs remembers the name it sees first: wait until udev has given
    # the new device its own, and until there is a GID.
    gid = f"/sys/class/infiniband/{os.environ['IBDEV']}/ports/1/gids/{rc.GID_INDEX}"
    while True:
        try:
            with open(gid) as file:
                if file.read().strip("0:\n"):
                    break
        except OSError:
            pass
        assert time.monotonic() < limit, os.listdir("/sys/class/infiniband")
        time.sleep(0.1)
    application = Application()
    assert application.dm.copy_from_dm(4, 4) == bytes(4)
    application.close()


def reset():
    """A function-level reset under an application."""
    application = Application()
    store(f"{DEVICE}/reset", "1")
    assert application.events()[-1] == e.IBV_EVENT_DEVICE_FATAL
    flushed(application.b, 3)
    assert answer(application.ctx.query_port, 1) in GONE
    application.sees_it_go()
    works_again()
    application.close()


def unbound():
    """The driver is unbound from the device; the application continues."""
    application = Application()
    store("/sys/bus/pci/drivers/qhca/unbind", PCI)
    try:
        application.events()
        flushed(application.b, 3)
        application.sees_it_go()
    finally:
        store("/sys/bus/pci/drivers/qhca/bind", PCI)
    application.close()


def dead():
    """The device stops: the event reports it, and a reset recovers it."""
    application = Application()
    subprocess.run(["devlink", "health", "set", f"pci/{PCI}", "reporter", "device",
                    "auto_recover", "false"], check=True)
    subprocess.run(["setpci", "-s", PCI, "COMMAND=0:4"], check=True)
    assert answer(rc.MR, application.pd, 4096, LOCAL) in GONE
    application.events()
    application.sees_it_go()
    subprocess.run(["setpci", "-s", PCI, "COMMAND=4:4"], check=True)
    store(f"{DEVICE}/reset", "1")
    subprocess.run(["devlink", "health", "set", f"pci/{PCI}", "reporter", "device",
                    "auto_recover", "true"], check=True)
    works_again()
    application.close()


def ready():
    print("ready", flush=True)


def idle_send(end, near):
    """A write now and then, with none in flight most of the time; yields the errno."""
    work = e.IBV_WR_RDMA_WRITE, [SGE(near.buf, 4, near.lkey)], near.buf + 64, near.rkey
    while not (error := answer(end.post, *work)):
        yield 0
        done = [0, []]
        while not done[0]:
            try:
                done = end.cq.poll(1)
            except PyverbsRDMAError as problem:
                assert problem.error_code in GONE, problem
                break
            yield 0
        assert all(wc.status in (OK, e.IBV_WC_WR_FLUSH_ERR) for wc in done[1]), done
    yield error


def idle_busy():
    """Nothing is in flight; an application that only posts and polls never enters the kernel."""
    ends, others = pair(), pair()
    near = memory(ends[0].pd, 4096, REMOTE)
    far = memory(others[0].pd, 4096, REMOTE)
    extended = rc.keep(CQEX(ends[0].ctx, CqInitAttrEx(cqe=16)))
    sends = idle_send(others[0], far)
    tries = {
        "poll": (lambda: answer(ends[0].cq.poll, 1), 0),
        "start_poll": (lambda: extended.start_poll(PollCqAttr()), errno.ENOENT),
        # a full queue reports nothing either
        "receive": (lambda: answer(ends[1].receive, SGE(near.buf, 4, near.lkey)),
                    errno.ENOMEM),
        "send": (lambda: next(sends), 0),
    }
    ready()
    while tries:
        for name, (function, nothing) in list(tries.items()):
            error = function()
            if error not in (0, nothing):
                assert error in GONE, (name, error)
                del tries[name]


def idle_event():
    """It sleeps until a completion comes."""
    ctx = rc.context()
    channel = rc.keep(CompChannel(ctx))
    cq = rc.keep(rc.CQ(ctx, 16, None, channel))
    cq.req_notify()
    ready()
    error = answer(channel.get_cq_event, cq)
    if not error:
        # the device has died, but is not removed
        cq.ack_events(1)
        error = answer(cq.poll, 1)
        assert answer(cq.req_notify) in GONE
    assert error in GONE, error


def exits_late():
    """Two resets under one application, which then ends without cleaning up."""
    application = Application()
    store(f"{DEVICE}/reset", "1")
    application.events()
    works_again()
    store(f"{DEVICE}/reset", "1")
    works_again()
    application.sees_it_go()


if __name__ == "__main__":
    main(sys.modules[__name__])
