/* SPDX-License-Identifier: Apache-2.0
 *
 * The threads of a peer, seen from outside: which of them work, where they run, and binding them. A library starts its
 * pool when it likes, and few tell where its threads run; /proc tells of all of them alike.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peer.h"
#include "placement.h"

enum { MOST_THREADS = 4096 };

struct seen_thread {
    pid_t id;
    double run_ms;
};

static FILE *thread_file(pid_t process, pid_t thread, const char *name)
{
    char path[96];
    snprintf(path, sizeof path, "/proc/%d/task/%d/%s", (int)process, (int)thread, name);
    return fopen(path, "re");
}

/* Fields of a thread's stat behind its name, which may hold anything: number 3 is the first. -1: unknown. */
static double stat_field(pid_t process, pid_t thread, int number)
{
    char line[1024];
    FILE *file = thread_file(process, thread, "stat");
    if (!file)
        return -1;
    char *at = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
    fclose(file);
    for (int field = 2; at && field < number; field++) {
        at = strchr(at + 1, ' ');
    }
    return at ? strtod(at + 1, NULL) : -1;
}

/* Time that the thread ran: from its scheduler statistics where there are some, else from its clock ticks. */
static double run_ms(pid_t process, pid_t thread)
{
    enum { UTIME = 14, STIME = 15 };
    double value = -1;
    FILE *file = thread_file(process, thread, "schedstat");
    if (file) {
        if (fscanf(file, "%lf", &value) == 1)
            value /= 1e6;
        fclose(file);
    } else if ((file = thread_file(process, thread, "sched"))) {
        char line[256];
        while (value < 0 && fgets(line, sizeof line, file))
            if (strncmp(line, "se.sum_exec_runtime", 19) == 0 && strchr(line, ':'))
                value = strtod(strchr(line, ':') + 1, NULL);
        fclose(file);
    }
    if (value < 0)
        value = 1e3 * (stat_field(process, thread, UTIME) + stat_field(process, thread, STIME)) /
                (double)sysconf(_SC_CLK_TCK);
    return value;
}

/* All threads of the process with the time that each ran; returns how many. */
static int list_threads(pid_t process, struct seen_thread *threads)
{
    char path[64];
    int count = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)process);
    DIR *folder = opendir(path);
    if (!folder)
        return 0;
    for (struct dirent *entry; count < MOST_THREADS && (entry = readdir(folder));) {
        pid_t id = (pid_t)atoi(entry->d_name);
        if (id > 0)
            threads[count++] = (struct seen_thread){.id = id, .run_ms = run_ms(process, id)};
    }
    closedir(folder);
    return count;
}

int peer_threads_count(const struct peer *peer)
{
    struct seen_thread threads[MOST_THREADS];
    return list_threads(peer->child.pid, threads);
}

/* Longest first; of equals the older. */
static int by_run_time(const void *left, const void *right)
{
    const struct seen_thread *a = left, *b = right;
    if (a->run_ms != b->run_ms)
        return a->run_ms < b->run_ms ? 1 : -1;
    return (a->id > b->id) - (a->id < b->id);
}

/* Time that threads ran which are no more, and the first thread. */
static void spent_ms(const struct peer *peer, const struct seen_thread *threads, int count, double *ended,
                     double *first)
{
    *first = run_ms(peer->child.pid, peer->child.pid);
    *ended = peer_usage(peer).cpu_ns / 1e6;
    for (int i = 0; i < count; i++)
        *ended -= threads[i].run_ms;
}

void peer_threads_mark(struct peer *peer)
{
    struct seen_thread threads[MOST_THREADS];
    spent_ms(peer, threads, list_threads(peer->child.pid, threads), &peer->ended_ms, &peer->first_ms);
}

/* Whether threads that are no more did a good part of the work since the mark. They had the mask of the thread that
 * started them: bound to one CPU, it would have them all there. */
static bool are_short_lived(const struct peer *peer, const struct seen_thread *threads, int count)
{
    static const double good_part = 0.25; /* of what the first thread ran */
    double ended, first;
    spent_ms(peer, threads, count, &ended, &first);
    return peer->threads > 1 && ended - peer->ended_ms > good_part * (first - peer->first_ms);
}

int peer_threads_bind(struct peer *peer, struct error *error)
{
    struct seen_thread threads[MOST_THREADS];
    int count = list_threads(peer->child.pid, threads), found = 1;
    qsort(threads, (size_t)count, sizeof *threads, by_run_time);
    memset(peer->working, 0, (size_t)peer->threads * sizeof *peer->working);
    peer->working[0] = peer->child.pid; /* its first thread has the number of the process */
    peer->short_lived = are_short_lived(peer, threads, count);
    if (peer->short_lived) {
        int rc = peer->cpus ? placement_bind_thread(peer->child.pid, peer->cpus, peer->threads) : 0;
        return rc < 0 ? error_wrong(error, -rc, "the peer can't be held to its CPUs: %s", placement_bind_reason(rc))
                      : 0;
    }
    for (int i = 0; i < count && found < peer->threads; i++)
        if (threads[i].id != peer->child.pid && threads[i].run_ms > 0)
            peer->working[found++] = threads[i].id;
    for (int t = 0; t < found && peer->cpus; t++) {
        int rc = placement_bind_thread(peer->working[t], &peer->cpus[t], 1);
        if (rc < 0)
            return error_wrong(error, -rc, "thread %d of the peer can't be bound to CPU %d: %s", t, peer->cpus[t],
                               placement_bind_reason(rc));
    }
    return 0;
}

enum { PROCESSOR = 39 };

/* The first thread is on one of the CPUs, and what it starts may use them all. */
static int inspect_short_lived(struct peer *peer, struct error *error)
{
    const int32_t cpu = (int32_t)stat_field(peer->child.pid, peer->child.pid, PROCESSOR);
    bool within = !peer->cpus;
    for (int t = 0; t < peer->threads && peer->cpus; t++) {
        within |= cpu == peer->cpus[t];
        peer->actual[t] = peer->cpus[t];
    }
    return within ? 0 : error_wrong(error, EXDEV, "the peer, held to CPUs of its placement, is on CPU %d", cpu);
}

int peer_threads_inspect(struct peer *peer, struct error *error)
{
    if (peer->short_lived)
        return inspect_short_lived(peer, error);
    for (int t = 0; t < peer->threads; t++) {
        if (!peer->working[t])
            continue;
        const int32_t cpu = (int32_t)stat_field(peer->child.pid, peer->working[t], PROCESSOR);
        if (cpu < 0)
            return error_wrong(error, ESRCH, "thread %d of the peer has ended", t);
        peer->migrations += peer->actual[t] >= 0 && peer->actual[t] != cpu;
        peer->actual[t] = cpu;
        if (peer->cpus && (cpu != peer->cpus[t] || !placement_is_bound(peer->working[t], peer->cpus[t])))
            return error_wrong(error, EXDEV, "thread %d of the peer, bound to CPU %d, lost its mask and is on CPU %d",
                               t, peer->cpus[t], cpu);
    }
    return 0;
}
