/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Main program for fuzz targets without libFuzzer: inputs from a seeded
 * generator, and from files.  It is not guided by coverage; inputs that
 * libFuzzer found are kept as files and run here, too.
 *
 * TARGET [--runs N] [--seed N] [--from FIRST] [FILE or FOLDER ...]
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "die.h"
#include "fuzz.h"
#include "rng.h"

#define INPUT_MAX 4096

static struct {
    uint8_t *data;
    size_t len;
} *corpus;
static size_t files;

static void run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t *b = malloc(INPUT_MAX);
    size_t n;

    CHECK(f && b, "%s cannot be read", path);
    n = fread(b, 1, INPUT_MAX, f);
    fclose(f);
    snprintf(die_replay, sizeof(die_replay), "TARGET %s", path);
    LLVMFuzzerTestOneInput(b, n);
    corpus = realloc(corpus, (files + 1) * sizeof(*corpus));
    CHECK(corpus, "no memory");
    corpus[files].data = b;
    corpus[files++].len = n;
}

static void run_path(const char *path)
{
    struct dirent **e;
    struct stat st;
    char name[4096];
    int n, i;

    CHECK(!stat(path, &st), "%s is not there", path);
    if (!S_ISDIR(st.st_mode)) {
        run_file(path);
        return;
    }
    n = scandir(path, &e, NULL, alphasort);
    for (i = 0; i < n; i++) {
        if (e[i]->d_name[0] != '.') {
            snprintf(name, sizeof(name), "%s/%s", path, e[i]->d_name);
            run_file(name);
        }
        free(e[i]);
    }
    free(e);
}

/* Input number @i: generated, or derived from the files. */
static size_t make_input(uint64_t seed, uint64_t i, uint8_t *b)
{
    size_t len, at, n;
    struct rng r;
    unsigned k;

    rng_init(&r, rng_mix(seed) + i);
    len = rng_log(&r, INPUT_MAX);
    for (at = 0; at < len; at++) {
        /* commands mostly consist of small numbers */
        b[at] = (uint8_t)(rng_pct(&r, 40) ? rng_u32(&r) : rng_log(&r, 255));
    }
    for (k = 0; files && k < 3; k++) {
        size_t f = rng_below(&r, files), from;

        from = rng_below(&r, corpus[f].len + 1);
        at = rng_below(&r, INPUT_MAX);
        n = corpus[f].len - from;
        n = n < INPUT_MAX - at ? n : INPUT_MAX - at;
        if (at > len) {
            at = len;
        }
        memcpy(b + at, corpus[f].data + from, n);
        len = at + n > len ? at + n : len;
    }
    return len;
}

int main(int argc, char **argv)
{
    uint64_t runs = 1000, seed = 1, from = 0, i;
    uint8_t *b = malloc(INPUT_MAX);
    int a;

    CHECK(b, "no memory");
    for (a = 1; a < argc; a++) {
        if (a + 1 < argc && !strcmp(argv[a], "--runs")) {
            runs = strtoull(argv[++a], NULL, 0);
        } else if (a + 1 < argc && !strcmp(argv[a], "--seed")) {
            seed = strtoull(argv[++a], NULL, 0);
        } else if (a + 1 < argc && !strcmp(argv[a], "--from")) {
            from = strtoull(argv[++a], NULL, 0);
        } else {
            run_path(argv[a]);
        }
    }
    for (i = from; i < from + runs; i++) {
        snprintf(die_replay, sizeof(die_replay), "%s --seed %" PRIu64
                 " --from %" PRIu64 " --runs 1 CORPUS", argv[0], seed, i);
        LLVMFuzzerTestOneInput(b, make_input(seed, i, b));
    }
    printf("%zu files, %" PRIu64 " inputs\n", files, runs);
    while (files) {
        free(corpus[--files].data);
    }
    free(corpus);
    free(b);
    return 0;
}
