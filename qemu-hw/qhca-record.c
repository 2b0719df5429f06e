/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca: recording an adapter to a file of JSON objects, one per line: the
 * decoded trace, the frames on the wire, and the clocks.
 *
 * It is written while the guest runs, so an event allocates no memory, and
 * numbers are formatted without printf.
 */
#include "qemu/osdep.h"
#include "qemu/timer.h"
#include "qemu/units.h"
#include "qemu/notify.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-qhca.h"
#include "system/system.h"
#include "engine/observe/decode.h"
#include "qhca-inspect.h"

#define QHCA_RECORD_LIMIT   (256 * MiB)
#define QHCA_RECORD_MIN     (64 * KiB)
#define QHCA_RECORD_FRAME   256
#define QHCA_RECORD_BUF     (1 * MiB)
/* Maximum length of a line: a frame of 64 KiB in hexadecimal. */
#define QHCA_RECORD_LINE    (132 * KiB)
/* Interval between clock pairs while there is activity, in ns. */
#define QHCA_RECORD_SYNC    (100 * 1000 * 1000)

struct QhcaRecorder {
    QhcaState *dev;
    Notifier exit;              /* for when QEMU exits */
    char *file;
    int fd;
    int error;                  /* errno of the first failed write */
    char *buf;                  /* of QHCA_RECORD_BUF bytes */
    size_t used;
    size_t line;                /* where the current line begins */
    bool first;                 /* nothing is in the open object yet */
    uint64_t size;              /* of the file, including the buffer */
    uint64_t limit;
    uint32_t frame_bytes;
    uint64_t events, lost;
    uint64_t unwritten;         /* events still in the buffer */
    int64_t synced;             /* virtual time of the last clock pair */
};

/* ---- text ---- */

static void qhca_record_flush(QhcaRecorder *r)
{
    ssize_t ret = 0;

    if (!r->error && r->used) {
        ret = qemu_write_full(r->fd, r->buf, r->used);
        if (ret != r->used) {
            r->error = errno ? errno : ENOSPC;
            r->events -= r->unwritten;
            r->lost += r->unwritten;
        }
    }
    r->unwritten = 0;
    r->used = 0;
}

static void qhca_put(QhcaRecorder *r, const char *text, size_t len)
{
    assert(r->used + len <= QHCA_RECORD_BUF);
    memcpy(r->buf + r->used, text, len);
    r->used += len;
}

static void qhca_put_char(QhcaRecorder *r, char c)
{
    r->buf[r->used++] = c;
}

static void qhca_put_number(QhcaRecorder *r, uint64_t val)
{
    char text[20];
    unsigned n = sizeof(text);

    do {
        text[--n] = '0' + val % 10;
        val /= 10;
    } while (val);
    qhca_put(r, text + n, sizeof(text) - n);
}

/* Names and texts are the device's own: ASCII, at most with quotes. */
static void qhca_put_string(QhcaRecorder *r, const char *text)
{
    qhca_put_char(r, '"');
    for (; *text; text++) {
        unsigned char c = *text;

        if (c == '"' || c == '\\') {
            qhca_put_char(r, '\\');
        }
        qhca_put_char(r, c < ' ' || c >= 0x7f ? '?' : c);
    }
    qhca_put_char(r, '"');
}

static void qhca_put_name(QhcaRecorder *r, const char *name)
{
    if (!r->first) {
        qhca_put_char(r, ',');
    }
    r->first = false;
    if (name) {
        qhca_put_string(r, name);
        qhca_put_char(r, ':');
    }
}

/* ---- an emitter that writes JSON text ---- */

static void qhca_record_begin(void *opaque, const char *name, bool list)
{
    QhcaRecorder *r = opaque;

    /* "end" always means an object: trace events have no lists. */
    assert(!list);
    qhca_put_name(r, name);
    qhca_put_char(r, '{');
    r->first = true;
}

static void qhca_record_close(void *opaque)
{
    QhcaRecorder *r = opaque;

    qhca_put_char(r, '}');
    r->first = false;
}

static void qhca_record_num(void *opaque, const char *name, uint64_t val,
                            bool hex)
{
    QhcaRecorder *r = opaque;

    qhca_put_name(r, name);
    qhca_put_number(r, val);
}

static void qhca_record_flag(void *opaque, const char *name, bool val)
{
    QhcaRecorder *r = opaque;

    qhca_put_name(r, name);
    qhca_put(r, val ? "true" : "false", val ? 4 : 5);
}

static void qhca_record_text(void *opaque, const char *name,
                             const char *text)
{
    QhcaRecorder *r = opaque;

    qhca_put_name(r, name);
    qhca_put_string(r, text);
}

static struct qhca_emit qhca_record_emit(QhcaRecorder *r)
{
    return (struct qhca_emit) {
        .opaque = r,
        .begin = qhca_record_begin,
        .end = qhca_record_close,
        .num = qhca_record_num,
        .flag = qhca_record_flag,
        .text = qhca_record_text,
    };
}

/* ---- lines ---- */

static void qhca_line_begin(QhcaRecorder *r)
{
    if (QHCA_RECORD_BUF - r->used < QHCA_RECORD_LINE) {
        qhca_record_flush(r);
    }
    r->line = r->used;
    qhca_put_char(r, '{');
    r->first = true;
}

/* False: the line was discarded, since the file has no room for it. */
static bool qhca_line_end(QhcaRecorder *r, bool always)
{
    size_t len;

    qhca_put(r, "}\n", 2);
    len = r->used - r->line;
    if (r->error || (!always && r->size + len > r->limit)) {
        r->used = r->line;
        return false;
    }
    r->size += len;
    return true;
}

static void qhca_line_count(QhcaRecorder *r)
{
    if (qhca_line_end(r, false)) {
        r->events++;
        r->unwritten++;
    } else {
        /* Accept no later line either, or the gap would not be visible. */
        r->limit = 0;
        r->lost++;
    }
}

/*
 * A pair of virtual time and the host's monotonic clock, which all processes of
 * a host share: the middle of two readings of the host clock around one of the
 * virtual clock.
 */
void qhca_record_sync(QhcaState *s, bool running)
{
    QhcaRecorder *r = s->record;
    struct qhca_emit em = qhca_record_emit(r);
    int64_t virt = 0, host = 0, width = INT64_MAX;
    int i;

    for (i = 0; i < 5; i++) {
        int64_t before = get_clock();
        int64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
        int64_t after = get_clock();

        if (after - before < width) {
            width = after - before;
            host = before + width / 2;
            virt = now;
        }
    }
    r->synced = virt;
    qhca_line_begin(r);
    qhca_emit_text(&em, "kind", "sync");
    qhca_emit_dec(&em, "time", virt);
    qhca_emit_dec(&em, "host", host);
    qhca_emit_dec(&em, "width", width);
    qhca_emit_flag(&em, "running", running);
    /* Always written: few, and without them the rest makes no sense. */
    qhca_line_end(r, true);
}

static void qhca_record_may_sync(QhcaState *s, int64_t time)
{
    if (s->record->limit && time - s->record->synced >= QHCA_RECORD_SYNC) {
        qhca_record_sync(s, runstate_is_running());
    }
}

/*
 * The context of a QP: all of it when the state changes; at a doorbell the
 * fields that matter there, as the device sees them.
 */
static void qhca_record_qpc(QhcaState *s, const struct qhca_trace *t)
{
    QhcaRecorder *r = s->record;
    struct qhca_emit em = qhca_record_emit(r);
    struct qhca_qpc qpc;

    if (!qhca_query_qp(s->engine, t->num, &qpc)) {
        return;
    }
    qhca_line_begin(r);
    qhca_emit_text(&em, "kind", "qpc");
    qhca_emit_dec(&em, "time", t->time);
    if (t->kind == QHCA_TR_QP_STATE) {
        qhca_emit_dec(&em, "qpn", t->num);
        qhca_decode_as(&em, "context", qhca_fields_qpc, &qpc);
    } else {
        qhca_emit_dec(&em, "qpn", t->num);
        qhca_emit_enum(&em, "state", "state_name", qhca_names_qp_state,
                       qpc.state, false);
        qhca_emit_dec(&em, "sq_head", le32_to_cpu(qpc.sq_head));
        qhca_emit_dec(&em, "sq_next", le32_to_cpu(qpc.sq_next));
        qhca_emit_dec(&em, "sq_tail", le32_to_cpu(qpc.sq_tail));
        qhca_emit_dec(&em, "snd_psn", le32_to_cpu(qpc.snd_psn));
        qhca_emit_dec(&em, "una_psn", le32_to_cpu(qpc.una_psn));
        qhca_emit_hex(&em, "sq_leaf", le64_to_cpu(qpc.sq_leaf));
    }
    qhca_line_count(r);
}

void qhca_record_event(QhcaState *s, const struct qhca_trace *t)
{
    QhcaRecorder *r = s->record;
    struct qhca_emit em = qhca_record_emit(r);

    qhca_record_may_sync(s, t->time);
    qhca_line_begin(r);
    qhca_emit_trace(&em, t);
    qhca_line_count(r);
    if (t->kind == QHCA_TR_QP_STATE ||
        (t->kind == QHCA_TR_DOORBELL && t->addr == QHCA_DB_SQ)) {
        qhca_record_qpc(s, t);
    }
}

typedef struct {
    QhcaRecorder *r;
    const char *kind;
    uint64_t time;
} QhcaRecordedFrame;

static void qhca_record_packet(void *opaque, const void *frame, size_t len)
{
    static const char digit[] = "0123456789abcdef";
    QhcaRecordedFrame *f = opaque;
    QhcaRecorder *r = f->r;
    struct qhca_emit em = qhca_record_emit(r);
    const uint8_t *p = frame;
    size_t i, keep = MIN(len, r->frame_bytes);

    qhca_line_begin(r);
    qhca_emit_text(&em, "kind", f->kind);
    qhca_emit_dec(&em, "time", f->time);
    qhca_emit_dec(&em, "bytes", len);
    qhca_put_name(r, "data");
    qhca_put_char(r, '"');
    for (i = 0; i < keep; i++) {
        qhca_put_char(r, digit[p[i] >> 4]);
        qhca_put_char(r, digit[p[i] & 15]);
    }
    qhca_put_char(r, '"');
    qhca_line_count(r);
}

void qhca_record_frame(QhcaState *s, bool out, const void *frame, size_t len,
                       uint64_t time)
{
    QhcaRecordedFrame f = {
        .r = s->record, .kind = out ? "frame_out" : "frame_in", .time = time,
    };

    qhca_record_may_sync(s, time);
    qhca_each_packet(frame, len, qhca_record_packet, &f);
}

/* ---- begin and end ---- */

static void qhca_record_exit(Notifier *n, void *data)
{
    qhca_record_end(container_of(n, QhcaRecorder, exit)->dev);
}

void qmp_qhca_record_start(const char *device, const char *file,
                           bool has_limit, uint64_t limit,
                           bool has_frame_bytes, uint32_t frame_bytes,
                           Error **errp)
{
    QhcaState *s;
    QhcaRecorder *r;
    struct qhca_emit em;
    g_autofree char *path = NULL;

    if (has_limit && limit < QHCA_RECORD_MIN) {
        error_setg(errp, "'limit' must be at least %d", (int)QHCA_RECORD_MIN);
        return;
    }
    if (has_frame_bytes && frame_bytes > 64 * KiB) {
        error_setg(errp, "'frame-bytes' must be at most %d",
                   (int)(64 * KiB));
        return;
    }
    s = qhca_find(device, errp);
    if (!s) {
        return;
    }
    if (s->record) {
        error_setg(errp, "A recording to '%s' is already running: end it with "
                   "qhca-record-stop", s->record->file);
        qhca_find_end(s);
        return;
    }
    r = g_new0(QhcaRecorder, 1);
    r->fd = qemu_create(file, O_WRONLY | O_TRUNC, 0600, errp);
    if (r->fd < 0) {
        g_free(r);
        qhca_find_end(s);
        return;
    }
    r->file = g_strdup(file);
    r->buf = g_malloc(QHCA_RECORD_BUF);
    r->limit = has_limit ? limit : QHCA_RECORD_LIMIT;
    r->frame_bytes = has_frame_bytes ? frame_bytes : QHCA_RECORD_FRAME;
    r->dev = s;
    r->exit.notify = qhca_record_exit;
    qemu_add_exit_notifier(&r->exit);
    s->record = r;

    em = qhca_record_emit(r);
    path = object_get_canonical_path(OBJECT(s));
    qhca_line_begin(r);
    qhca_emit_text(&em, "kind", "start");
    qhca_emit_dec(&em, "version", 1);
    qhca_emit_text(&em, "device", path);
    qhca_emit_bytes(&em, "mac", s->cfg.mac, sizeof(s->cfg.mac));
    qhca_emit_dec(&em, "frame_bytes", r->frame_bytes);
    qhca_line_end(r, true);
    qhca_record_sync(s, runstate_is_running());
    qhca_find_end(s);
}

static void qhca_record_free(QhcaRecorder *r)
{
    g_free(r->buf);
    g_free(r->file);
    g_free(r);
}

/* Write the last lines; the caller owns the recorder afterwards. */
static QhcaRecorder *qhca_record_finish(QhcaState *s)
{
    QhcaRecorder *r = s->record;
    struct qhca_emit em = qhca_record_emit(r);

    qhca_record_sync(s, runstate_is_running());
    qhca_line_begin(r);
    qhca_emit_text(&em, "kind", "end");
    qhca_emit_dec(&em, "events", r->events);
    qhca_emit_dec(&em, "lost", r->lost);
    qhca_line_end(r, true);
    qhca_record_flush(r);
    if (qemu_close(r->fd) && !r->error) {
        r->error = errno;
    }
    qemu_remove_exit_notifier(&r->exit);
    s->record = NULL;
    return r;
}

void qhca_record_end(QhcaState *s)
{
    if (s->record) {
        qhca_record_free(qhca_record_finish(s));
    }
}

QhcaRecord *qmp_qhca_record_stop(const char *device, Error **errp)
{
    QhcaState *s = qhca_find(device, errp);
    QhcaRecord *info;
    QhcaRecorder *r;

    if (!s) {
        return NULL;
    }
    if (!s->record) {
        error_setg(errp, "No recording runs: begin one with "
                   "qhca-record-start");
        qhca_find_end(s);
        return NULL;
    }
    r = qhca_record_finish(s);
    qhca_find_end(s);
    info = g_new0(QhcaRecord, 1);
    info->file = g_strdup(r->file);
    info->events = r->events;
    info->lost = r->lost;
    info->error = r->error ? g_strdup(strerror(r->error)) : NULL;
    qhca_record_free(r);
    return info;
}
