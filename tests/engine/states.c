/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Main program of the states of releases: writes them, and loads them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "states.h"

#define SCENE_FILE_MAX (16u << 20)

/* Deliver @n frames; the last one finds the adapter saved before its run. */
static void deliver(struct scene *s, unsigned n)
{
    while (n) {
        if (n > 1 ? scene_step(s) : scene_deliver(s)) {
            n--;
        } else {
            CHECK(world_step(&s->w), "%u frames are missing", n);
        }
    }
}

static struct blob make(const struct scene_kind *k)
{
    struct blob b;
    struct scene s;

    snprintf(die_replay, sizeof(die_replay), "scene %s", k->name);
    scene_open(&s);
    k->build(&s);
    deliver(&s, k->frames);
    b = scene_save(&s);
    scene_close(&s);
    return b;
}

static void write_all(const char *dir)
{
    const struct scene_kind *k;
    char path[4096];
    struct blob b;
    FILE *f;

    for (k = scene_kinds; k->name; k++) {
        b = make(k);
        snprintf(path, sizeof(path), "%s/%s", dir, k->name);
        f = fopen(path, "wb");
        CHECK(f, "%s: %s", path, strerror(errno));
        CHECK(fwrite(b.b, 1, b.len, f) == b.len && !fclose(f), "%s: %s", path,
              strerror(errno));
        free(b.b);
    }
}

/* What this release saves now. */
static void check_now(void)
{
    const struct scene_kind *k;
    struct blob b;

    for (k = scene_kinds; k->name; k++) {
        b = make(k);
        scene_check(&b, false);
    }
}

/* Read a file that gzip has compressed; the Makefile passes its name. */
static struct blob read_file(const char *path)
{
    struct blob b = { .b = malloc(SCENE_FILE_MAX) };
    char command[4200];
    FILE *f;

    snprintf(command, sizeof(command), "gzip -dc '%s'", path);
    f = popen(command, "r");
    CHECK(b.b && f, "%s: %s", path, strerror(errno));
    b.len = fread(b.b, 1, SCENE_FILE_MAX, f);
    CHECK(!pclose(f) && b.len < SCENE_FILE_MAX, "%s: not read", path);
    return b;
}

int main(int argc, char **argv)
{
    struct blob b;
    int i;

    if (argc == 3 && !strcmp(argv[1], "--write")) {
        write_all(argv[2]);
        return 0;
    }
    if (argc < 2 || strcmp(argv[1], "--check")) {
        fprintf(stderr, "usage: states --write FOLDER\n"
                        "       states --check FILE.gz...\n");
        return 2;
    }
    check_now();
    for (i = 2; i < argc; i++) {
        snprintf(die_replay, sizeof(die_replay), "%s --check %s", argv[0],
                 argv[i]);
        b = read_file(argv[i]);
        scene_check(&b, true);
    }
    snprintf(die_replay, sizeof(die_replay), "%s --check ...", argv[0]);
    sections_check();
    printf("%d states in files\n", argc - 2);
    return 0;
}
