/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca: memory links to other adapters of this host (engine/memlink).
 *
 * An adapter with the property "memlink" listens on a socket in that directory,
 * named by its MAC address, and connects to those whose names sort before its
 * own.  The connecting end creates the rings.  Each end describes the parts of
 * its guest's memory that it shares, and passes descriptors that are open for
 * reading.  From then on the socket carries bells (and not an eventfd: a peer
 * could make writing to that block).  An end that has stopped using the link
 * shuts the socket down, which tells the other that its memory is no longer
 * read; the link is gone when both have.
 *
 * The peer is another process of the same user.  It is not trusted: nothing
 * here ever waits for it, except for a moment for the end of a copy
 * (qhca_op_memlink_wait()), and a read of its memory must not raise SIGBUS.
 * That memory must be sealed against shrinking, and must not be in huge pages
 * of hugetlbfs: after a hole was punched, there may be no page for it.
 *
 * A file that is open for reading can be opened for writing, by /proc, if the
 * user and a security module permit it.
 */
#include "qemu/osdep.h"
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <linux/magic.h>
#include "hw/pci/pci.h"
#include "migration/misc.h"
#include "qapi/error.h"
#include "qemu/cutils.h"
#include "qemu/error-report.h"
#include "qemu/guest-random.h"
#include "qemu/main-loop.h"
#include "qhca-bell.h"
#include "qhca-compat.h"
#include "qhca-fds.h"
#include "qhca.h"

#define QHCA_MEMLINK_PEERS      64
#define QHCA_MEMLINK_REGIONS    8
/* Most memory of a peer that is mapped; a sparse file may have any size. */
#define QHCA_MEMLINK_MOST       (1ULL << 40)
#define QHCA_MEMLINK_SCAN_MS    1000
/* Scans after which a peer that has not sent its hello is disconnected. */
#define QHCA_MEMLINK_SCANS      5
/* Scans after which a peer that does not stop using the link is forgotten. */
#define QHCA_MEMLINK_PARTING    2
/* Most connections accepted between two scans. */
#define QHCA_MEMLINK_ACCEPTS    16
/* Most names that one scan reads, and most sockets that it tries. */
#define QHCA_MEMLINK_NAMES      1024
#define QHCA_MEMLINK_TRIES      128
/* Scans before the same warning is repeated. */
#define QHCA_MEMLINK_QUIET      60
/* Different warnings until then. */
#define QHCA_MEMLINK_WARNINGS   8
/* Runs of the engine in the thread until the main loop has its turn. */
#define QHCA_MEMLINK_RUNS       8
/* How long a call of the engine waits for copies of all peers, in us. */
#define QHCA_MEMLINK_WAIT_US    1000

#define QHCA_MEMLINK_MAGIC      0x71684d4c
#define QHCA_MEMLINK_VERSION    4

/* The first message of each end; from the connecting one with its rings. */
typedef struct QhcaMemlinkHello {
    uint32_t magic, version;
    uint8_t mac[6];
    uint16_t rings;             /* descriptors of rings: 2 or 0 */
    uint32_t regions, zero;     /* no padding, which would not be initialized */
    uint64_t token;
    struct {
        uint64_t off, size;
    } region[QHCA_MEMLINK_REGIONS];
} QhcaMemlinkHello;

QEMU_BUILD_BUG_ON(sizeof(QhcaMemlinkHello) !=
                  32 + 16 * QHCA_MEMLINK_REGIONS);

typedef struct QhcaMemlinkPeer QhcaMemlinkPeer;

struct QhcaMemlinkPeer {
    QhcaMemlink *m;
    QLIST_ENTRY(QhcaMemlinkPeer) next;
    int fd;
    bool threaded;              /* the thread reads from it */
    uint64_t received;          /* records, when it was last called */
    bool connecting;            /* our end made the connection */
    bool said;                  /* its hello was accepted */
    bool dead;                  /* to be removed */
    bool parted;                /* it was told that we have stopped */
    bool gone;                  /* it has stopped, too */
    bool rung;                  /* it rang while the machine was stopped */
    bool late;                  /* see qhca_bells_ring_soon() */
    unsigned id;                /* the engine's number, 0: not attached */
    unsigned scans;             /* since it was connected, or parted */
    uint8_t mac[6];
    char name[16];              /* of its socket, if connecting */
    uint64_t token;
    void *ring[2];              /* that of the connecting end is the first */
    struct qhca_memlink_region region[QHCA_MEMLINK_REGIONS];
    unsigned regions;
};

struct QhcaMemlink {
    QhcaState *s;
    char *dir;
    char name[16];              /* of our socket */
    int fd;                     /* it listens; -1: no */
    QhcaBells *bells;           /* the thread, or NULL */
    unsigned runs;              /* of the engine in the thread, on end */
    QEMUTimer *scan;
    int64_t waits;              /* since when this call waits for copies, us */
    GDir *names;                /* where the next scan continues, or NULL */
    QEMUBH *reap;
    unsigned peers;
    unsigned accepts;           /* since the last scan */
    const char *warned[QHCA_MEMLINK_WARNINGS]; /* static, or NULL; these are */
    unsigned quiet;             /* not repeated for this many scans */
    QLIST_HEAD(, QhcaMemlinkPeer) list;
    /* Our guest's memory that peers may read. */
    struct {
        uint8_t *host;
        uint64_t off, size;
        int fd;                 /* read-only */
    } region[QHCA_MEMLINK_REGIONS];
    unsigned regions;
    bool stale;                 /* one of them was removed */
    uint64_t shared;            /* their sizes */
    RAMBlockNotifier removed;
    Notifier polled;
    bool allowed;               /* the engine may use links */
    bool told;                  /* that we cannot listen */
    int direct;                 /* no IOMMU: 1, there is one: 0, unknown: -1 */
};

/* ---- memory ---- */

/* Does mapped memory of it last, whatever its owner does? */
static bool qhca_memlink_lasts(int fd)
{
    int seals = fcntl(fd, F_GET_SEALS);
    struct statfs fs;

    return seals >= 0 && (seals & F_SEAL_SHRINK) && !fstatfs(fd, &fs) &&
           fs.f_type == TMPFS_MAGIC;
}

/* Another descriptor of the file of @fd, open for reading; or -1. */
static int qhca_memlink_read_only(int fd)
{
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", fd);
    Error *err = NULL;

    fd = qemu_open(path, O_RDONLY, &err);
    if (fd < 0) {
        warn_reportf_err(err, "qhca: memlink: memory is not shared: ");
    }
    return fd;
}

static int qhca_memlink_add_block(RAMBlock *rb, void *opaque)
{
    QhcaMemlink *m = opaque;
    uint64_t size = qemu_ram_get_used_length(rb);
    int fd = qemu_ram_get_fd(rb);
    unsigned n = m->regions;

    if (fd < 0 || !qemu_ram_is_shared(rb) || !qhca_memlink_lasts(fd) ||
        n == QHCA_MEMLINK_REGIONS || size > QHCA_MEMLINK_MOST - m->shared) {
        return 0;
    }
    fd = qhca_memlink_read_only(fd);
    if (fd >= 0) {
        m->region[n].host = qemu_ram_get_host_addr(rb);
        m->region[n].off = rb->fd_offset;
        m->region[n].size = size;
        m->region[n].fd = fd;
        m->regions++;
        m->shared += size;
    }
    return 0;
}

static void qhca_memlink_share_none(QhcaMemlink *m)
{
    while (m->regions) {
        close(m->region[--m->regions].fd);
    }
    m->shared = 0;
}

static void qhca_memlink_drop(QhcaMemlinkPeer *p);

/* Peers keep a file as long as they map it: they have to start anew. */
static void qhca_memlink_block_removed(RAMBlockNotifier *n, void *host,
                                       size_t size, size_t max_size)
{
    QhcaMemlink *m = container_of(n, QhcaMemlink, removed);
    QhcaMemlinkPeer *p;
    unsigned i;

    for (i = 0; i < m->regions; i++) {
        if (m->region[i].host == host) {
            qhca_memlink_share_none(m);
            m->stale = true;
            QLIST_FOREACH(p, &m->list, next) {
                qhca_memlink_drop(p);
            }
        }
    }
}

/* Where guest memory is, if it is one piece of RAM; or NULL. */
static uint8_t *qhca_memlink_host(QhcaState *s, uint64_t addr, size_t len)
{
    MemTxAttrs attrs = { .memory = 1 };
    hwaddr xlat, run = len;
    MemoryRegion *mr;

    RCU_READ_LOCK_GUARD();
    mr = address_space_translate(pci_get_address_space(PCI_DEVICE(s)), addr,
                                 &xlat, &run, false, attrs);
    return run == len && memory_access_is_direct(mr, false, attrs) ?
           (uint8_t *)memory_region_get_ram_ptr(mr) + xlat : NULL;
}

bool qhca_op_dma_share(void *opaque, uint64_t addr, size_t len,
                       uint32_t *region, uint64_t *off)
{
    QhcaState *s = opaque;
    QhcaMemlink *m = s->memlink;
    MemoryRegionCache *map;
    uint8_t *host;
    hwaddr xlat;
    unsigned i;

    if (unlikely(s->gone || !m)) {
        return false;
    }
    if (m->direct < 0) {
        /* Behind an IOMMU a mapping may end without notice to the device. */
        m->direct = pci_device_iommu_address_space(PCI_DEVICE(s)) ==
                    &address_space_memory;
    }
    if (!m->direct) {
        return false;
    }
    map = qhca_dma_cached(s, addr, len, &xlat);
    if (likely(map)) {
        host = map->ptr + xlat;
    } else {
        host = qhca_memlink_host(s, addr, len);
    }
    for (i = 0; host && i < m->regions; i++) {
        if (host >= m->region[i].host && len <= m->region[i].size &&
            host - m->region[i].host <= m->region[i].size - len) {
            *region = i;
            *off = host - m->region[i].host;
            return true;
        }
    }
    return false;
}

/* ---- peers ---- */

static QhcaMemlinkPeer *qhca_memlink_peer(QhcaMemlink *m, unsigned id)
{
    QhcaMemlinkPeer *p;

    QLIST_FOREACH(p, &m->list, next) {
        if (p->id == id && !p->dead) {
            return p;
        }
    }
    return NULL;
}

/* The peer that the engine means, if there still is one. */
static QhcaMemlinkPeer *qhca_memlink_engine_peer(QhcaState *s, unsigned id)
{
    return s->memlink ? qhca_memlink_peer(s->memlink, id) : NULL;
}

/* Do not listen to the peer. */
static void qhca_memlink_ignore(QhcaMemlinkPeer *p)
{
    if (p->threaded) {
        qhca_bells_remove(p->m->bells, p->fd);
        p->threaded = false;
    } else {
        qemu_set_fd_handler(p->fd, NULL, NULL, NULL);
    }
}

/* Disconnect, but not within a call of the engine: see qhca_memlink_reap(). */
static void qhca_memlink_drop(QhcaMemlinkPeer *p)
{
    if (!p->dead) {
        p->dead = true;
        qhca_memlink_ignore(p);
        if (p->m->reap) {
            qemu_bh_schedule(p->m->reap);
        }
    }
}

/* Has the peer shut the socket down, or broken a rule?  Else read a bell. */
static bool qhca_memlink_closed(QhcaMemlinkPeer *p, bool *bell)
{
    QhcaBell b;
    ssize_t len = qhca_fds_recv(p->fd, &b, sizeof(b));

    *bell = len > 0;
    if (len == sizeof(b) && p->threaded) {
        qhca_bells_rung_at(p->m->bells, b.cpu);
    }
    return !len || (len < 0 && errno != EAGAIN && errno != EINTR);
}

static void qhca_memlink_parting(void *opaque)
{
    QhcaMemlinkPeer *p = opaque;
    bool bell;

    if (qhca_memlink_closed(p, &bell)) {
        p->gone = true;
        qhca_memlink_ignore(p);
        qemu_bh_schedule(p->m->reap);
    }
}

/* Peers may connect and fail all the time: do not flood the log. */
static bool qhca_memlink_warns(QhcaMemlink *m, const char *why)
{
    unsigned i;

    for (i = 0; i < QHCA_MEMLINK_WARNINGS && m->warned[i]; i++) {
        if (m->warned[i] == why) {
            return false;
        }
    }
    if (i == QHCA_MEMLINK_WARNINGS) {
        return false;
    }
    m->warned[i] = why;
    m->quiet = QHCA_MEMLINK_QUIET;
    return true;
}

/* The engine does not use it any more; a thread unmaps the peer's memory. */
static void qhca_memlink_free(QhcaMemlinkPeer *p)
{
    struct iovec map[2 + QHCA_MEMLINK_REGIONS];
    unsigned maps = 0, i;

    for (i = 0; i < 2; i++) {
        if (p->ring[i]) {
            map[maps].iov_base = p->ring[i];
            map[maps++].iov_len = QHCA_MEMLINK_RING_BYTES;
        }
    }
    for (i = 0; i < p->regions; i++) {
        map[maps].iov_base = (void *)p->region[i].base;
        map[maps++].iov_len = p->region[i].len;
    }
    qhca_memlink_ignore(p);
    shutdown(p->fd, SHUT_RDWR); /* it need not wait for the thread */
    qhca_fds_release(&p->fd, 1, map, maps);
    g_free(p);
}

/*
 * Stop using the link of a dead peer, and tell it.  True: it has stopped, too,
 * or does not respond.
 */
static bool qhca_memlink_part(QhcaMemlinkPeer *p)
{
    if (!p->id || p->gone) {
        return true;
    }
    if (!p->parted) {
        p->parted = true;
        p->scans = 0;
        qhca_memlink_end(p->m->s->engine, p->id);
        shutdown(p->fd, SHUT_WR);
        qemu_set_fd_handler(p->fd, qhca_memlink_parting, NULL, p);
    }
    return p->scans >= QHCA_MEMLINK_PARTING;
}

static QhcaMemlinkPeer *qhca_memlink_take_dead(QhcaMemlink *m)
{
    QhcaMemlinkPeer *p;

    QLIST_FOREACH(p, &m->list, next) {
        if (p->dead && qhca_memlink_part(p)) {
            QLIST_REMOVE(p, next);
            m->peers--;
            return p;
        }
    }
    return NULL;
}

/*
 * Part from dead peers, and remove those that are gone, unless a call of the
 * engine is in progress.
 */
static void qhca_memlink_reap(void *opaque)
{
    QhcaMemlink *m = opaque;
    QhcaState *s = m->s;
    QhcaMemlinkPeer *p;

    object_ref(OBJECT(s));      /* an interrupt may unplug us */
    while (qhca_enter(s)) {
        p = qhca_memlink_take_dead(m);
        if (p && p->id) {
            qhca_memlink_detach(s->engine, p->id);
        }
        qhca_leave(s);
        if (!p) {
            break;
        }
        qhca_memlink_free(p);
    }
    object_unref(OBJECT(s));    /* if there are more: at the next scan */
}

/* May packets use links, or is something observing the wire? */
static bool qhca_memlink_wanted(QhcaState *s)
{
    NetClientState *nc = s->nic ? qemu_get_queue(s->nic) : NULL;

    return nc && nc->peer && QTAILQ_EMPTY(&nc->peer->filters) && !s->record &&
           runstate_is_running();
}

void qhca_memlink_update(QhcaState *s)
{
    if (s->memlink) {
        s->memlink->waits = 0;
        s->memlink->allowed = qhca_memlink_wanted(s);
        qhca_memlinks_allow(s->engine, s->memlink->allowed);
    }
}

/*
 * Called before and after each wait of the main loop: the net core does not
 * report that a filter was put on the netdev or removed from it.  Interrupts
 * are left to a BH.  They may unplug adapters, and so remove notifiers from the
 * list that is being walked.
 */
static void qhca_memlink_polled(Notifier *n, void *data)
{
    QhcaMemlink *m = container_of(n, QhcaMemlink, polled);
    QhcaState *s = m->s;

    /* If a call of the engine is in progress: when it ends. */
    if (unlikely(qhca_memlink_wanted(s) != m->allowed) && qhca_enter(s)) {
        qhca_memlink_update(s);
        s->in_engine = false;
        if (s->any_raised) {
            qhca_later(s);
        }
    }
}

/* Revoke shared memory; within a call of the engine, when that ends. */
void qhca_memlink_no_dma(QhcaState *s)
{
    if (s->memlink && s->in_engine) {
        s->revoke_wanted = true;
    } else if (s->memlink && qhca_enter(s)) {
        qhca_memlinks_revoke(s->engine);
        s->in_engine = false;   /* no interrupts: they are DMA, too */
    }
}

static bool qhca_memlink_address(QhcaMemlink *m, const char *name,
                                 struct sockaddr_un *to)
{
    memset(to, 0, sizeof(*to));
    to->sun_family = AF_UNIX;
    return snprintf(to->sun_path, sizeof(to->sun_path), "%s/%s", m->dir,
                    name) < sizeof(to->sun_path);
}

/*
 * connect() follows symbolic links, and a file system in user space that one of
 * them leads to may never answer.
 */
static bool qhca_memlink_connect_to(int sock, const char *path)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    int file = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    int err;

    if (file < 0) {
        return false;
    }
    snprintf(to.sun_path, sizeof(to.sun_path), "/proc/self/fd/%d", file);
    err = connect(sock, (struct sockaddr *)&to, sizeof(to)) ? errno : 0;
    close(file);
    errno = err;
    return !err;
}

/*
 * Is the machine elsewhere: at the other end of a migration, with our MAC
 * address, on this host?  Or is a part of its memory?  A peer that read a page
 * before it arrives would turn it into a zero page, which then counts as there.
 */
static bool qhca_memlink_elsewhere(void)
{
    return runstate_check(RUN_STATE_INMIGRATE) ||
           migration_in_incoming_postcopy() ||
           runstate_check(RUN_STATE_FINISH_MIGRATE) ||
           runstate_check(RUN_STATE_POSTMIGRATE);
}

static void qhca_memlink_unlisten(QhcaMemlink *m)
{
    struct sockaddr_un to;

    if (m->fd >= 0) {
        /* In this order: then another adapter may bind here. */
        qhca_memlink_address(m, m->name, &to);
        unlink(to.sun_path);
        qemu_set_fd_handler(m->fd, NULL, NULL, NULL);
        /* It may have other names: no more connections come. */
        shutdown(m->fd, SHUT_RDWR);
        qhca_fds_close(&m->fd, 1);      /* and what was not accepted */
        m->fd = -1;
    }
}

/* Let the peers find the process that continues this machine. */
static void qhca_memlink_leave_to_other(QhcaMemlink *m)
{
    QhcaMemlinkPeer *p;

    qhca_memlink_unlisten(m);
    QLIST_FOREACH(p, &m->list, next) {
        qhca_memlink_drop(p);
    }
}

/* A stopped machine uses no links. */
void qhca_memlink_vm_change(QhcaState *s)
{
    if (!s->memlink) {
        return;
    }
    if (qhca_memlink_elsewhere()) {
        qhca_memlink_leave_to_other(s->memlink);
    } else if (runstate_is_running() && s->memlink->fd < 0) {
        timer_mod(s->memlink->scan, qemu_clock_get_ms(QEMU_CLOCK_REALTIME));
    }
    if (qhca_enter(s)) {
        qhca_memlink_update(s);
        s->in_engine = false;   /* no interrupts: they might unplug us */
    }
}

/* From now on the thread reads from an attached peer's socket. */
static void qhca_memlink_to_thread(QhcaMemlinkPeer *p)
{
    QhcaMemlink *m = p->m;

    qhca_memlink_ignore(p);
    p->threaded = true;
    if (!qhca_bells_add(m->bells, p->fd, p->id)) {
        qhca_memlink_drop(p);
    }
}

/* Attach the links whose peer's hello was accepted to the engine. */
static void qhca_memlink_attach_all(QhcaMemlink *m)
{
    QhcaState *s = m->s;
    QhcaMemlinkPeer *p;

    if (!qhca_enter(s)) {
        return;                 /* at the next scan */
    }
    QLIST_FOREACH(p, &m->list, next) {
        struct qhca_memlink_config c = {
            .token = p->token,
            .tx = p->ring[!p->connecting],
            .rx = p->ring[p->connecting],
            .region = p->region,
            .regions = p->regions,
        };

        if (p->said && !p->dead && !p->id) {
            memcpy(c.mac, p->mac, sizeof(c.mac));
            qemu_guest_getrandom_nofail(&c.secret, sizeof(c.secret));
            p->id = qhca_memlink_attach(s->engine, &c);
            if (!p->id) {
                qhca_memlink_drop(p);
            } else if (m->bells) {
                qhca_memlink_to_thread(p);
            }
        }
    }
    qhca_leave(s);
}

/* ---- the hello ---- */

static void qhca_memlink_say_hello(QhcaMemlinkPeer *p, const int *rings)
{
    QhcaMemlink *m = p->m;
    QhcaMemlinkHello h = {
        .magic = QHCA_MEMLINK_MAGIC,
        .version = QHCA_MEMLINK_VERSION,
        .rings = rings ? 2 : 0,
        .token = p->token,
    };
    union {
        struct cmsghdr hdr;
        char buf[CMSG_SPACE((2 + QHCA_MEMLINK_REGIONS) * sizeof(int))];
    } control = { };
    struct iovec iov = { .iov_base = &h, .iov_len = sizeof(h) };
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1,
    };
    int fd[2 + QHCA_MEMLINK_REGIONS];
    unsigned n = 0, i;

    memcpy(h.mac, m->s->cfg.mac, sizeof(h.mac));
    for (i = 0; rings && i < 2; i++) {
        fd[n++] = rings[i];
    }
    for (i = 0; i < m->regions; i++) {
        h.region[i].off = m->region[i].off;
        h.region[i].size = m->region[i].size;
        h.regions++;
        fd[n++] = m->region[i].fd;
    }
    if (n) {
        msg.msg_control = control.buf;
        msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
        control.hdr.cmsg_level = SOL_SOCKET;
        control.hdr.cmsg_type = SCM_RIGHTS;
        control.hdr.cmsg_len = CMSG_LEN(n * sizeof(int));
        memcpy(CMSG_DATA(&control.hdr), fd, n * sizeof(int));
    }
    if (sendmsg(p->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof(h)) {
        qhca_memlink_drop(p);
    }
}

/* Map @len bytes of the peer's memory at @off of @fd; NULL: not allowed. */
static void *qhca_memlink_map(int fd, uint64_t off, uint64_t len, int prot)
{
    struct stat st;
    void *p;

    /* In this order: the size may shrink before the file is sealed. */
    if (!qhca_memlink_lasts(fd) || fstat(fd, &st) || !len ||
        off > st.st_size || len > st.st_size - off) {
        return NULL;
    }
    /* With mlockall(), access would allocate and lock all of it at once. */
    p = mmap(NULL, len, PROT_NONE, MAP_SHARED, fd, off);
    if (p == MAP_FAILED) {
        return NULL;
    }
    if (munlock(p, len) || mprotect(p, len, prot)) {
        munmap(p, len);
        return NULL;
    }
    madvise(p, len, MADV_DONTDUMP);
    return p;
}

static void qhca_memlink_name(char name[16], const uint8_t mac[6])
{
    snprintf(name, 16, "%02x%02x%02x%02x%02x%02x", mac[0], mac[1], mac[2],
             mac[3], mac[4], mac[5]);
}

/* Is the hello of @len bytes, with @n descriptors, valid? */
static const char *qhca_memlink_take_hello(QhcaMemlinkPeer *p,
                                           const QhcaMemlinkHello *h,
                                           size_t len, const int *fd,
                                           unsigned n)
{
    unsigned rings = p->connecting ? 0 : 2, i;
    uint64_t left = QHCA_MEMLINK_MOST;
    QhcaMemlinkPeer *other;
    char name[16];

    if (len != sizeof(*h) || h->magic != QHCA_MEMLINK_MAGIC) {
        return "it is no qhca";
    }
    if (h->version != QHCA_MEMLINK_VERSION) {
        return "it is of another version";
    }
    if (h->rings != rings || h->regions > QHCA_MEMLINK_REGIONS ||
        n != rings + h->regions) {
        return "its descriptors are not those that it announces";
    }
    qhca_memlink_name(name, h->mac);
    if (p->connecting ? strcmp(p->name, name) : strcmp(name, p->m->name) <= 0) {
        return "its MAC address is not that of this end of a link";
    }
    QLIST_FOREACH(other, &p->m->list, next) {
        if (other != p && other->said && !other->dead &&
            !memcmp(other->mac, h->mac, sizeof(other->mac))) {
            return "there is a link to its MAC address already";
        }
    }
    for (i = 0; i < rings; i++) {
        p->ring[i] = qhca_memlink_map(fd[i], 0, QHCA_MEMLINK_RING_BYTES,
                                      PROT_READ | PROT_WRITE);
        if (!p->ring[i]) {
            return "a ring cannot be mapped";
        }
    }
    for (i = 0; i < h->regions; i++) {
        if (h->region[i].size > left) {
            return "it has too much memory";
        }
        left -= h->region[i].size;
        p->region[i].len = h->region[i].size;
        p->region[i].base = qhca_memlink_map(fd[rings + i], h->region[i].off,
                                             h->region[i].size, PROT_READ);
        if (!p->region[i].base) {
            return "its memory cannot be mapped, is not sealed, or is in "
                   "huge pages";
        }
        p->regions++;
    }
    memcpy(p->mac, h->mac, sizeof(p->mac));
    if (!p->connecting) {
        p->token = h->token;
    }
    return NULL;
}

/* Read the peer's hello; false: not there yet, or refused. */
static bool qhca_memlink_hear_hello(QhcaMemlinkPeer *p)
{
    const char *wrong = "it closed the connection";
    QhcaMemlinkHello h;
    int fd[QHCA_FDS_MESSAGE];
    unsigned n;
    bool cut;
    ssize_t len;

    if (qhca_fds_full()) {
        qhca_memlink_drop(p);   /* it may try again */
        return false;
    }
    len = qhca_fds_receive(p->fd, &h, sizeof(h), fd, &n, &cut);
    if (len < 0 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }
    /* An empty message may have descriptors, too. */
    if (len > 0) {
        wrong = cut ? "its hello is too long" :
                qhca_memlink_take_hello(p, &h, len, fd, n);
    }
    if (wrong) {
        qhca_fds_close(fd, n);
        if (len > 0 && qhca_memlink_warns(p->m, wrong)) {
            warn_report("qhca: no memory link to a peer: %s", wrong);
        }
        qhca_memlink_drop(p);
        return false;
    }
    while (n) {
        close(fd[--n]);         /* each is mapped */
    }
    p->said = true;
    return true;
}

/* ---- bells ---- */

static void qhca_memlink_rung(QhcaMemlinkPeer *p)
{
    QhcaState *s = p->m->s;
    bool running = runstate_is_running();

    if (!running || s->in_engine) {
        /*
         * See qhca_memlink_resume().  A stopped call ends with a BH; the calls
         * that wait for it are not for bells, since a reset drops those.
         */
        p->rung = true;
        if (running && !s->stopped) {
            qhca_later(s);
        }
        return;
    }
    p->rung = false;
    s->run_at_once = true;
    qhca_call(s, &(QhcaCall) { .kind = QHCA_CALL_BELL, .val = p->id });
}

static void qhca_memlink_readable(void *opaque)
{
    QhcaMemlinkPeer *p = opaque;
    bool bell;

    if (!p->said) {
        if (qhca_memlink_hear_hello(p)) {
            if (!p->connecting) {
                qhca_memlink_say_hello(p, NULL);
            }
            qhca_memlink_attach_all(p->m);
        }
        return;
    }
    /* A peer rings once each time we sleep: there is hardly ever another. */
    if (qhca_memlink_closed(p, &bell)) {
        p->gone = true;
        qhca_memlink_drop(p);
    } else if (bell && p->id) {
        qhca_memlink_rung(p);
    }
}

/* In the thread; returns how many records have come since the last call. */
static uint64_t qhca_memlink_ring(void *opaque, uint64_t id)
{
    QhcaMemlink *m = opaque;
    QhcaMemlinkPeer *p = qhca_memlink_peer(m, id);
    uint64_t before;

    if (!p) {
        return 0;
    }
    before = p->received;
    qhca_memlink_readable(p);
    /* The engine is gone if an interrupt has unplugged us. */
    if (!p->threaded || !qhca_enter(m->s)) {
        return 0;
    }
    p->received = qhca_memlink_received(m->s->engine, p->id);
    m->s->in_engine = false;
    return p->received - before;
}

bool qhca_memlink_runs(const QhcaState *s)
{
    return s->memlink && s->memlink->bells &&
           qhca_bells_answering(s->memlink->bells);
}

/*
 * In the thread: has the engine asked to be run?  Usually the thread runs it,
 * because the main loop would have to be woken for that.
 */
static bool qhca_memlink_more(void *opaque, bool now)
{
    QhcaMemlink *m = opaque;
    QhcaState *s = m->s;

    if (!s->run_wanted) {
        m->runs = 0;
        return false;
    }
    if (s->stopped || s->in_engine || !runstate_is_running() ||
        m->runs == QHCA_MEMLINK_RUNS) {
        m->runs = 0;
        qhca_later(s);
        return false;
    }
    m->runs++;
    if (now) {
        s->run_wanted = false;
        qhca_call(s, &(QhcaCall) { .kind = QHCA_CALL_RUN });
    }
    return s->run_wanted;
}

static void qhca_memlink_lost(void *opaque, uint64_t id)
{
    QhcaMemlinkPeer *p = qhca_memlink_peer(opaque, id);

    /* Another link may have got the number meanwhile. */
    if (p && !qhca_bells_send(p->fd)) {
        qhca_memlink_drop(p);
    }
}

static const QhcaBellFns qhca_memlink_bells = {
    .ring = qhca_memlink_ring,
    .more = qhca_memlink_more,
    .lost = qhca_memlink_lost,
};

void qhca_memlink_resume(QhcaState *s)
{
    QhcaMemlinkPeer *p;

again:
    if (s->memlink && !s->in_engine && runstate_is_running()) {
        QLIST_FOREACH(p, &s->memlink->list, next) {
            if (p->rung && !p->dead && p->id) {
                qhca_memlink_rung(p);
                goto again;     /* the list may have changed */
            }
        }
    }
}

void qhca_op_memlink_bell(void *opaque, unsigned id)
{
    QhcaMemlinkPeer *p = qhca_memlink_engine_peer(opaque, id);

    if (!p) {
        return;
    }
    if (p->threaded) {
        if (qhca_bells_ring_later(p->m->bells, p->fd, id)) {
            return;
        }
        qhca_bells_rung(p->m->bells, p->fd);
    }
    if (!qhca_bells_send(p->fd)) {
        qhca_memlink_drop(p);
    }
}

bool qhca_op_memlink_bell_soon(void *opaque, unsigned id)
{
    QhcaMemlinkPeer *p = qhca_memlink_engine_peer(opaque, id);

    return p && p->threaded && !qatomic_xchg(&p->late, false) &&
           qhca_bells_ring_soon(p->m->bells, p->fd, id, &p->late);
}

bool qhca_op_memlink_wait(void *opaque, unsigned id)
{
    QhcaState *s = opaque;
    QhcaMemlinkPeer *p = s->memlink ? QLIST_FIRST(&s->memlink->list) : NULL;
    int64_t now = g_get_monotonic_time();

    while (p && p->id != id) {          /* it may be dead */
        p = QLIST_NEXT(p, next);
    }
    if (!p || p->gone) {
        return false;
    }
    if (!p->m->waits) {
        p->m->waits = now;
    }
    if (now - p->m->waits > QHCA_MEMLINK_WAIT_US) {
        return false;
    }
    sched_yield();
    return true;
}

void qhca_op_memlink_cut(void *opaque, unsigned id, const char *why)
{
    QhcaMemlinkPeer *p = qhca_memlink_engine_peer(opaque, id);

    if (p) {
        if (qhca_memlink_warns(p->m, why)) {
            warn_report("qhca: memory link to %02x:%02x:%02x:%02x:%02x:%02x "
                        "cut: %s", p->mac[0], p->mac[1], p->mac[2], p->mac[3],
                        p->mac[4], p->mac[5], why);
        }
        qhca_memlink_drop(p);
    }
}

/* ---- finding each other ---- */

static QhcaMemlinkPeer *qhca_memlink_new_peer(QhcaMemlink *m, int fd)
{
    QhcaMemlinkPeer *p = g_new0(QhcaMemlinkPeer, 1);

    p->m = m;
    p->fd = fd;
    m->peers++;
    QLIST_INSERT_HEAD(&m->list, p, next);
    qemu_set_fd_handler(fd, qhca_memlink_readable, NULL, p);
    return p;
}

/* Is the other end a process of our user?  Other users get no memory. */
static bool qhca_memlink_same_user(int fd)
{
    struct ucred cred;
    socklen_t len = sizeof(cred);

    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) &&
           cred.uid == geteuid();
}

static void qhca_memlink_accept(void *opaque)
{
    QhcaMemlink *m = opaque;
    int fd;

    if (++m->accepts >= QHCA_MEMLINK_ACCEPTS || qhca_fds_full()) {
        m->accepts = QHCA_MEMLINK_ACCEPTS;
        qemu_set_fd_handler(m->fd, NULL, NULL, NULL);   /* until the scan */
    }
    fd = accept4(m->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        return;
    }
    if (m->stale || m->peers == QHCA_MEMLINK_PEERS ||
        !qhca_memlink_same_user(fd)) {
        qhca_fds_close(&fd, 1);
        return;
    }
    qhca_memlink_new_peer(m, fd);
}

static int qhca_memlink_make_ring(void **ring)
{
    int fd = memfd_create("qhca-memlink", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    *ring = NULL;
    if (fd < 0) {
        return -1;
    }
    if (ftruncate(fd, QHCA_MEMLINK_RING_BYTES) ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
        close(fd);
        return -1;
    }
    *ring = qhca_memlink_map(fd, 0, QHCA_MEMLINK_RING_BYTES,
                             PROT_READ | PROT_WRITE);
    if (!*ring) {
        close(fd);
        return -1;
    }
    return fd;
}

static void qhca_memlink_connect(QhcaMemlink *m, const char *name)
{
    struct sockaddr_un to;
    QhcaMemlinkPeer *p;
    int rings[2] = { -1, -1 }, i;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0) {
        return;
    }
    if (!qhca_memlink_address(m, name, &to) ||
        !qhca_memlink_connect_to(fd, to.sun_path)) {
        close(fd);              /* without an adapter, or busy */
        return;
    }
    if (!qhca_memlink_same_user(fd)) {
        qhca_fds_close(&fd, 1);
        return;
    }
    p = qhca_memlink_new_peer(m, fd);
    p->connecting = true;
    pstrcpy(p->name, sizeof(p->name), name);
    qemu_guest_getrandom_nofail(&p->token, sizeof(p->token));
    for (i = 0; i < 2; i++) {
        rings[i] = qhca_memlink_make_ring(&p->ring[i]);
    }
    if (rings[0] >= 0 && rings[1] >= 0) {
        qhca_memlink_say_hello(p, rings);
    } else {
        qhca_memlink_drop(p);
    }
    for (i = 0; i < 2; i++) {
        if (rings[i] >= 0) {
            close(rings[i]);
        }
    }
}

static bool qhca_memlink_connected(QhcaMemlink *m, const char *name)
{
    QhcaMemlinkPeer *p;

    QLIST_FOREACH(p, &m->list, next) {
        if (p->connecting && !strcmp(p->name, name)) {
            return true;
        }
    }
    return false;
}

static bool qhca_memlink_listen(QhcaMemlink *m, Error **errp)
{
    struct sockaddr_un to;
    int fd;

    if (!qhca_memlink_address(m, m->name, &to)) {
        error_setg(errp, "qhca: memlink: the path is too long: %s", m->dir);
        return false;
    }
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        error_setg_errno(errp, errno, "qhca: memlink: socket");
        return false;
    }
    /* The socket of an earlier process, or of another adapter? */
    if (qhca_memlink_connect_to(fd, to.sun_path)) {
        error_setg(errp, "qhca: memlink: %s is in use: two adapters have the "
                   "same MAC address", to.sun_path);
        qhca_fds_close(&fd, 1);
        return false;
    }
    if (errno == ECONNREFUSED) {
        unlink(to.sun_path);
    }
    if (bind(fd, (struct sockaddr *)&to, sizeof(to)) || listen(fd, 16)) {
        error_setg_errno(errp, errno, "qhca: memlink: %s", to.sun_path);
        close(fd);
        return false;
    }
    m->fd = fd;
    m->told = false;
    qemu_set_fd_handler(fd, qhca_memlink_accept, NULL, m);
    return true;
}

static bool qhca_memlink_is_name(const char *name)
{
    return strlen(name) == 12 && strspn(name, "0123456789abcdef") == 12;
}

/*
 * Connect to new adapters.  Peers may fill the folder, so a scan has a budget
 * and the next one continues.
 */
static void qhca_memlink_look(QhcaMemlink *m)
{
    unsigned names, tries = 0;
    const char *name;

    if (!m->names) {
        m->names = g_dir_open(m->dir, 0, NULL);
    }
    for (names = 0; m->names && names < QHCA_MEMLINK_NAMES &&
                    tries < QHCA_MEMLINK_TRIES && !qhca_fds_full(); names++) {
        name = g_dir_read_name(m->names);
        if (!name) {            /* that was all */
            g_dir_close(m->names);
            m->names = NULL;
            break;
        }
        if (qhca_memlink_is_name(name) && strcmp(name, m->name) < 0 &&
            m->peers < QHCA_MEMLINK_PEERS && !qhca_memlink_connected(m, name)) {
            qhca_memlink_connect(m, name);
            tries++;
        }
    }
}

/* Look for new adapters, and check those that are only half connected. */
static void qhca_memlink_scan(void *opaque)
{
    QhcaMemlink *m = opaque;
    QhcaState *s = m->s;
    QhcaMemlinkPeer *p;
    Error *err = NULL;

    if (m->stale && QLIST_EMPTY(&m->list)) {
        m->stale = false;
        qemu_ram_foreach_block(qhca_memlink_add_block, m);
    }
    QLIST_FOREACH(p, &m->list, next) {
        if (p->parted) {
            p->scans++;
        } else if (!p->said && ++p->scans > QHCA_MEMLINK_SCANS) {
            qhca_memlink_drop(p);
        }
    }
    if (m->quiet && !--m->quiet) {
        memset(m->warned, 0, sizeof(m->warned));
    }
    if (!qhca_fds_full()) {
        if (m->accepts >= QHCA_MEMLINK_ACCEPTS && m->fd >= 0) {
            qemu_set_fd_handler(m->fd, qhca_memlink_accept, NULL, m);
        }
        m->accepts = 0;
    }
    if (qhca_memlink_elsewhere()) {
        qhca_memlink_leave_to_other(m);         /* it was stopped already */
    } else if (m->fd < 0 && !qhca_memlink_listen(m, &err)) {
        /* The other end of a migration will end soon. */
        if (!m->told) {
            m->told = true;
            warn_report_err(err);
        } else {
            error_free(err);
        }
    }
    if (m->fd >= 0 && !m->stale) {
        qhca_memlink_look(m);
    }
    timer_mod(m->scan, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) +
                       QHCA_MEMLINK_SCAN_MS);
    object_ref(OBJECT(s));      /* an interrupt may unplug us */
    qhca_memlink_attach_all(m);
    qhca_memlink_reap(m);
    object_unref(OBJECT(s));
}

/* ---- life cycle ---- */

bool qhca_memlink_init(QhcaState *s, Error **errp)
{
    QhcaMemlink *m;

    if (s->memlink_thread == ON_OFF_AUTO_ON && !s->memlink_dir) {
        error_setg(errp, "qhca: memlink-thread needs memlink");
        return false;
    }
    /* A recording of this machine does not contain what a peer does. */
    if (!s->memlink_dir || qhca_replayed()) {
        return true;
    }
    m = g_new0(QhcaMemlink, 1);
    m->s = s;
    m->dir = g_strdup(s->memlink_dir);
    m->direct = -1;
    qhca_memlink_name(m->name, s->cfg.mac);
    m->fd = -1;
    if (!qhca_memlink_elsewhere() && !qhca_memlink_listen(m, errp)) {
        goto err_free;
    }
    if (s->memlink_thread != ON_OFF_AUTO_OFF) {
        m->bells = qhca_bells_new(OBJECT(s), &qhca_memlink_bells, m);
        if (!m->bells && s->memlink_thread == ON_OFF_AUTO_ON) {
            error_setg_errno(errp, errno, "qhca: memlink-thread");
            qhca_memlink_unlisten(m);
            goto err_free;
        }
        if (!m->bells) {
            warn_report("qhca: memlink: the main loop answers bells, as there "
                        "can be no thread: %s", strerror(errno));
        }
    }
    s->memlink = m;
    QLIST_INIT(&m->list);
    qemu_ram_foreach_block(qhca_memlink_add_block, m);
    if (!m->regions) {
        warn_report("qhca: memlink: the guest's memory is not shared, so "
                    "payload is copied twice; use memory-backend-memfd, "
                    "without huge pages");
    }
    m->removed.ram_block_removed = qhca_memlink_block_removed;
    ram_block_notifier_add(&m->removed);
    m->polled.notify = qhca_memlink_polled;
    main_loop_poll_add_notifier(&m->polled);
    m->reap = qemu_bh_new(qhca_memlink_reap, m);
    m->scan = timer_new_ms(QEMU_CLOCK_REALTIME, qhca_memlink_scan, m);
    timer_mod(m->scan, qemu_clock_get_ms(QEMU_CLOCK_REALTIME));
    return true;

err_free:
    g_free(m->dir);
    g_free(m);
    return false;
}

void qhca_memlink_exit(QhcaState *s)
{
    QhcaMemlink *m = s->memlink;
    QhcaMemlinkPeer *p;

    if (!m) {
        return;
    }
    timer_free(m->scan);
    m->scan = NULL;
    main_loop_poll_remove_notifier(&m->polled);
    qhca_memlink_unlisten(m);
    ram_block_notifier_remove(&m->removed);
    qhca_memlink_share_none(m);
    if (m->names) {
        g_dir_close(m->names);
        m->names = NULL;
    }
    qemu_bh_delete(m->reap);
    m->reap = NULL;
    if (!QLIST_EMPTY(&m->list) && qhca_enter(s)) {
        qhca_reset(s->engine);  /* waits for copies of the guest's memory */
        s->in_engine = false;   /* no more interrupts */
        QLIST_FOREACH(p, &m->list, next) {
            shutdown(p->fd, SHUT_WR);
        }
    }
    QLIST_FOREACH(p, &m->list, next) {
        qhca_memlink_drop(p);
        qhca_memlink_ignore(p);
    }
    if (m->bells) {
        qhca_bells_free(m->bells);
        m->bells = NULL;
    }
}

void qhca_memlink_finalize(QhcaState *s)
{
    QhcaMemlink *m = s->memlink;
    QhcaMemlinkPeer *p, *next;

    if (m) {
        /* A call of the engine may have been using them until now. */
        QLIST_FOREACH_SAFE(p, &m->list, next, next) {
            qhca_memlink_free(p);
        }
        g_free(m->dir);
        g_free(m);
        s->memlink = NULL;
    }
}
