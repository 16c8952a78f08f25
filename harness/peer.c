/* SPDX-License-Identifier: Apache-2.0
 *
 * Starting a peer, asking it, watching over it; see peer.h.
 */
#include "peer.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "intern.h"
#include "json_util.h"
#include "peer_programs.h"

enum { POLL_MS = 50, MOST_WORDS = 64 };

int peer_start(const json_t *command, const struct team *team, double memory_limit, struct peer *peer,
               struct error *error)
{
    char *argv[MOST_WORDS + 1] = {NULL};
    const size_t words = json_array_size(command);
    *peer = (struct peer){.threads = team ? team->threads : 1, .cpus = team ? team->cpus : NULL};
    if (words < 1 || words > MOST_WORDS)
        return error_usage(error, "a peer's command has %zu words; 1 to %d can be", words, MOST_WORDS);
    for (size_t w = 0; w < words; w++)
        argv[w] = (char *)json_string_value(json_array_get(command, w));
    peer->memory_limit = memory_limit;
    peer->working = calloc((size_t)peer->threads, sizeof *peer->working);
    peer->actual = calloc((size_t)peer->threads, sizeof *peer->actual);
    if (!peer->working || !peer->actual) {
        peer_end(peer);
        return error_system(error, ENOMEM, "a peer of %d threads", peer->threads);
    }
    for (int t = 0; t < peer->threads; t++)
        peer->actual[t] = -1;
    const struct child_program program = {
        .argv = argv,
        .cpus = peer->cpus,
        .threads = peer->threads,
        .peer_path = getenv("ATTNBENCH_PEER_PATH") ? NULL : peer_folder("build/peers/venv/lib"),
    };
    int rc = child_spawn(&program, &peer->child, error);
    if (rc < 0)
        peer_end(peer);
    return rc;
}

/* To the peer and to what it started, which has its process group. */
static void signal_all(pid_t pid, int number)
{
    kill(getpgid(pid) == pid ? -pid : pid, number);
}

static void peer_kill(struct peer *peer)
{
    if (peer->child.pid > 0)
        signal_all(peer->child.pid, SIGKILL);
    child_kill(&peer->child);
}

void peer_end(struct peer *peer)
{
    peer_kill(peer);
    free(peer->working);
    free(peer->actual);
    *peer = (struct peer){0};
}

/* One number of /proc/PID/status, in the unit that stands there; -1: not there. */
static double status_number(pid_t pid, const char *field)
{
    char path[64], *line = NULL;
    size_t capacity = 0, length = strlen(field);
    double value = -1;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return -1;
    while (value < 0 && getline(&line, &capacity, file) >= 0)
        if (strncmp(line, field, length) == 0 && line[length] == ':')
            value = strtod(line + length + 1, NULL);
    free(line);
    fclose(file);
    return value;
}

double peer_peak_rss(const struct peer *peer)
{
    const double kib = status_number(peer->child.pid, "VmHWM");
    return kib < 0 ? -1 : 1024 * kib;
}

struct peer_usage peer_usage(const struct peer *peer)
{
    struct peer_usage usage = {.cpu_ns = -1, .involuntary_switches = -1};
    clockid_t clock;
    struct timespec spent;
    if (clock_getcpuclockid(peer->child.pid, &clock) == 0 && clock_gettime(clock, &spent) == 0)
        usage.cpu_ns = 1e9 * (double)spent.tv_sec + (double)spent.tv_nsec;
    usage.involuntary_switches = (int64_t)status_number(peer->child.pid, "nonvoluntary_ctxt_switches");
    return usage;
}

static bool takes_too_much(const struct peer *peer)
{
    const double kib = status_number(peer->child.pid, "VmRSS");
    return peer->memory_limit > 0 && kib > 0 && 1024 * kib > peer->memory_limit;
}

/* A reason that is no error of the system. */
static int blame(struct error *error, const char *reason)
{
    error_machine(error, "%s", reason);
    error->exit_code = EXIT_WRONG;
    return -EPIPE;
}

static bool has_died(pid_t pid)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

static bool has_stopped(pid_t pid)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/* After the pipe's end, which may come before the process's. Kills what is left. */
static int mourn(struct peer *peer, struct error *error)
{
    enum { TRIES = 100, TRY_US = 10000 };
    const pid_t pid = peer->child.pid;
    for (int t = 0; t < TRIES && !has_died(pid); t++)
        usleep(TRY_US);
    const bool died = has_died(pid);
    signal_all(pid, SIGKILL);
    const char *epitaph = child_epitaph(&peer->child);
    if (!died)
        return blame(error, "its process closed the pipe that it was to answer by; killed");
    return blame(error, intern_format("its process %s%s", strncmp(epitaph, "killed", 6) == 0 ? "was " : "", epitaph));
}

/* Why a peer that has not answered yet may not go on: -errno and the message; 0: it may. */
static int judge(const struct peer *peer, struct error *error)
{
    if (takes_too_much(peer))
        return blame(error, intern_format("took more memory than --memory-limit allows (%.2f GB); killed",
                                          peer->memory_limit / 1e9));
    if (has_stopped(peer->child.pid))
        return blame(error, "its process stopped itself (SIGSTOP); killed");
    return 0;
}

/* Waits for one line; kills the peer where it may not go on. 0 or -errno with the message. */
static int await(struct peer *peer, double timeout_s, const char *limit, json_t **answer, struct error *error)
{
    const double deadline = clock_ns() + 1e9 * timeout_s;
    for (;;) {
        int rc = lines_read(&peer->child.from, POLL_MS, answer);
        if (rc == 0)
            return 0;
        if (rc == -EPROTO)
            rc = blame(error, "answered with what is no JSON object; killed");
        else if ((rc != -ETIMEDOUT && rc != -EINTR) || has_died(peer->child.pid)) /* others may hold its pipe open */
            return mourn(peer, error);
        else if (clock_ns() > deadline)
            rc = blame(error, intern_format("still running after %s %g s; killed", limit, timeout_s));
        else
            rc = judge(peer, error);
        if (rc < 0) {
            peer_kill(peer);
            return rc;
        }
    }
}

json_t *peer_ask(struct peer *peer, json_t *request, double timeout_s, const char *limit, struct error *error)
{
    json_t *answer = NULL;
    if (peer->child.pid <= 0) {
        json_decref(request);
        blame(error, "its process has ended before");
        return NULL;
    }
    signal_all(peer->child.pid, SIGCONT);
    if (child_send(&peer->child, request) < 0) {
        mourn(peer, error);
        return NULL;
    }
    if (await(peer, timeout_s, limit, &answer, error) < 0)
        return NULL;
    signal_all(peer->child.pid, SIGSTOP);
    return answer;
}
