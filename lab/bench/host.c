/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the host itself can do, to compare an emulated adapter with: memcpy,
 * and a pair of unix datagram sockets between two processes, which is what
 * two guests' frames go through. Prints one JSON object.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

/* MiB/s of copying blocks of @size bytes, over a buffer larger than a cache. */
static double copy_rate(size_t size)
{
    size_t total = 64u << 20;
    char *from = malloc(total), *to = malloc(total);
    double begin, seconds;
    uint64_t bytes = 0;

    if (!from || !to) {
        exit(1);
    }
    memset(from, 1, total);
    memset(to, 2, total);
    begin = now();
    do {
        for (size_t at = 0; at + size <= total; at += size) {
            memcpy(to + at, from + at, size);
            bytes += size;
        }
        seconds = now() - begin;
    } while (seconds < 0.5);
    if (to[total / 2] != 1) {
        exit(1);
    }
    free(from);
    free(to);
    return bytes / seconds / (1 << 20);
}

/* Frames a second of @size bytes from a child process to this one. */
static double socket_rate(size_t size)
{
    int pair[2];
    pid_t child;
    char *frame = calloc(1, size);
    double begin, seconds;
    uint64_t frames = 0;

    if (!frame || socketpair(AF_UNIX, SOCK_DGRAM, 0, pair)) {
        exit(1);
    }
    child = fork();
    if (child == 0) {
        close(pair[0]);
        while (send(pair[1], frame, size, MSG_NOSIGNAL) > 0) {
        }
        _exit(0);
    }
    close(pair[1]);
    begin = now();
    do {
        for (int i = 0; i < 1000; i++, frames++) {
            if (recv(pair[0], frame, size, 0) < 0) {
                exit(1);
            }
        }
        seconds = now() - begin;
    } while (seconds < 0.7);
    close(pair[0]);
    waitpid(child, NULL, 0);
    free(frame);
    return frames / seconds;
}

int main(void)
{
    double small = socket_rate(64), large = socket_rate(4178);

    printf("{\"memcpy_4k_mib_s\": %.0f, \"memcpy_64k_mib_s\": %.0f, "
           "\"memcpy_1m_mib_s\": %.0f, ",
           copy_rate(4096), copy_rate(65536), copy_rate(1 << 20));
    printf("\"unix_dgram_64b_frames_s\": %.0f, "
           "\"unix_dgram_4178b_frames_s\": %.0f, "
           "\"unix_dgram_4178b_mib_s\": %.0f}\n",
           small, large, large * 4178 / (1 << 20));
    return 0;
}
