/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * States of releases: two adapters, A and B, are saved in the middle of their
 * traffic, with the memory of their guests and the frames on the wire.  A later
 * load, in any release, finishes the traffic; the outcome is known.
 */
#ifndef QHCA_TEST_STATES_H
#define QHCA_TEST_STATES_H

#include "guest.h"

#define SCENE_NODES 2
#define SCENE_CQS 4
#define SCENE_AREAS 8

struct scene_frame {
    struct scene_frame *next;
    unsigned src;               /* the node that sent it */
    uint32_t len;
    uint8_t b[];
};

/* The ring of a CQ.  No CQE is ever consumed. */
struct scene_cq {
    unsigned node;
    uint64_t addr;
    uint32_t shift;
};

/* Memory whose final content matters. */
struct scene_area {
    unsigned node;
    bool paged;                 /* @addr: a table of pages of 4 KiB */
    uint64_t addr;
    uint32_t len;
};

struct scene {
    struct world w;             /* first: see on_wire() */
    struct guest g[SCENE_NODES];
    struct scene_frame *first, **last;  /* on the wire, in order */
    unsigned sent, lose;        /* the frame of this number is lost; 0: none */
    uint64_t sent_at[SCENE_NODES];      /* when a node sent its last frame */
    struct scene_cq cq[SCENE_CQS];
    unsigned cqs;
    struct scene_area area[SCENE_AREAS];
    unsigned areas;
};

/* states_scene.c */

/* Two adapters on a wire that holds each frame until scene_step(). */
void scene_open(struct scene *s);
void scene_close(struct scene *s);
/* Put a frame on the wire, as if node @src had sent it. */
void scene_put(struct scene *s, unsigned src, const void *frame,
               uint32_t len);
/* Deliver the oldest frame, without what is due then; false: there is none. */
bool scene_deliver(struct scene *s);
/* The same, and give the adapters time for what is due. */
bool scene_step(struct scene *s);
/* Deliver everything and bring in missing pages, until nothing is left. */
void scene_finish(struct scene *s);
/* The outcome: a line for each CQE and area, from malloc(). */
char *scene_outcome(const struct scene *s);

/* states_scenes.c */

struct scene_kind {
    const char *name;
    /* Make the objects and give them all their work. */
    void (*build)(struct scene *s);
    unsigned frames;            /* to deliver before it is saved */
};

extern const struct scene_kind scene_kinds[];

/* states_file.c */

struct blob {
    uint8_t *b;
    size_t len, at;
};

/* The scene as it is now, then its outcome, for which it is finished. */
struct blob scene_save(struct scene *s);
/*
 * Make that scene; @state: what each adapter is to load, from malloc().  Returns
 * its outcome, likewise.
 */
char *scene_load(struct scene *s, struct blob *from,
                 struct blob state[SCENE_NODES]);

/* states_check.c */

/*
 * Check everything that must hold for a saved scene, which is in a file of the
 * corpus if @kept; @from is consumed.
 */
void scene_check(struct blob *from, bool kept);
/*
 * Each section that the scenes checked so far were saved with must be in a file
 * of the corpus, in the version that is written now.
 */
void sections_check(void);

#endif
