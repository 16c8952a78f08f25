/* SPDX-License-Identifier: Apache-2.0
 *
 * Counting an event group by LIKWID's library on the team's CPUs. Whether that works is tried in a child process first,
 * which may crash or print as it likes. Counters of a core are summed over the CPUs; those of a socket (memory traffic,
 * L3, energy) stand for all that its CPUs did, are read once a socket, and are labelled "@S0".
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "counters.h"
#include "intern.h"
#include "likwid_library.h"
#include "placement.h"
#include "system_files.h"
#include "topology.h"
#include "values.h"

enum { TRIAL_SECONDS = 20, REASON_BYTES = 1024 };

/* One figure of the group: an event on all CPUs, or on those of one socket. */
struct figure {
    int event, socket; /* socket -1: all CPUs */
};

struct likwid_state {
    const struct likwid_library *likwid;
    int group, cpu_count;
    int *cpus, *sockets;    /* [cpu_count] */
    struct figure *figures; /* [columns] */
    double *sums;           /* [columns] since the last take */
};

static int likwid_check(const char *argument, struct error *error)
{
    char shown[QUOTED_BYTES];
    for (const char *c = argument; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '_' && *c != '-')
            return error_usage(error, "likwid: %s is not the name of an event group (likwid-perfctr -a)",
                               quoted(argument, shown));
    return 0;
}

static int refused(const char **reason, const char *call, int rc, const char *said)
{
    const char *name = rc < 0 ? strerrorname_np(-rc) : NULL;
    *reason = intern_format("%s returned %d%s%s%s: %s", call, rc, name ? " (" : "", name ? name : "", name ? ")" : "",
                            said ? said : "no word why");
    return -1;
}

/* Everything up to the start of the counters. The group's number, or -1 and the reason. */
static int set_up(const struct likwid_library *likwid, const char *group, const int *cpus, int count,
                  const char **reason)
{
    static const char *const calls[] = {"topology_init", "numa_init", "perfmon_init", "perfmon_addEventSet",
                                        "perfmon_setupCounters"};
    struct likwid_silence silence;
    int step = 0, id = -1, rc;
    likwid_quiet(&silence);
    rc = likwid->topology_init();
    if (rc >= 0) {
        step++;
        rc = likwid->numa_init();
    }
    if (rc >= 0) {
        likwid->affinity_init();
        step++;
        rc = likwid->perfmon_init(count, cpus);
    }
    if (rc >= 0) {
        step++;
        rc = id = likwid->perfmon_addEventSet(group);
    }
    if (rc >= 0) {
        step++;
        rc = likwid->perfmon_setupCounters(id);
    }
    const char *said = likwid_loud(&silence);
    return rc < 0 ? refused(reason, calls[step], rc, said) : id;
}

static void try_in_child(const struct likwid_library *likwid, const char *group, const int *cpus, int count, int out)
{
    const char *reason = "";
    alarm(TRIAL_SECONDS);
    affinity_restore();
    if (set_up(likwid, group, cpus, count, &reason) >= 0)
        reason = "";
    ssize_t written = write(out, reason, strlen(reason));
    _exit(written == (ssize_t)strlen(reason) ? 0 : 1);
}

/* NULL: it works; else why not. */
static const char *try_it(const struct likwid_library *likwid, const char *group, const int *cpus, int count)
{
    int ends[2], status = 0;
    char text[REASON_BYTES];
    size_t used = 0;
    if (pipe(ends) < 0)
        return intern_format("no pipe for a trial: %s", strerror(errno));
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        try_in_child(likwid, group, cpus, count, ends[1]);
    }
    close(ends[1]);
    for (ssize_t n = 1; pid > 0 && used + 1 < sizeof text;) {
        n = read(ends[0], text + used, sizeof text - 1 - used);
        if (n == 0 || (n < 0 && errno != EINTR))
            break;
        used += n > 0 ? (size_t)n : 0;
    }
    close(ends[0]);
    text[used] = '\0';
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (pid < 0)
        return "no process for a trial";
    if (WIFSIGNALED(status))
        return intern_format("likwid was killed by signal %d (%s) while it was set up", WTERMSIG(status),
                             strsignal(WTERMSIG(status)));
    if (!used && WEXITSTATUS(status))
        return intern_format("likwid ended the process with status %d while it was set up", WEXITSTATUS(status));
    if (!used)
        return NULL;
    const char *msr = intern_format("/dev/cpu/%d/msr", cpus[0]);
    return access(msr, R_OK) == 0 ? intern(text)
                                  : intern_format("%s; %s: %s (modprobe msr, on the host)", text, msr, strerror(errno));
}

static int socket_of(int cpu)
{
    double package;
    return system_number(&package, "/sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu) && package > 0
               ? (int)package
               : 0;
}

/* The CPUs of the team, each once. */
static void list_cpus(struct likwid_state *state, const struct team *team)
{
    state->cpus = calloc((size_t)team->threads, sizeof *state->cpus);
    state->sockets = calloc((size_t)team->threads, sizeof *state->sockets);
    if (!state->cpus || !state->sockets)
        abort();
    for (int t = 0; t < team->threads; t++) {
        int i = 0;
        while (i < state->cpu_count && state->cpus[i] != team->cpus[t])
            i++;
        if (i < state->cpu_count)
            continue;
        state->cpus[i] = team->cpus[t];
        state->sockets[i] = socket_of(team->cpus[t]);
        state->cpu_count++;
    }
}

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Registers that every hardware thread has of its own; all others belong to the socket or a part of it. */
static bool is_core_counter(const char *counter)
{
    return begins(counter, "PMC") || begins(counter, "FIXC") || begins(counter, "METRIC");
}

/* A temperature or voltage of this moment can't be shared out over calls. */
static bool is_gauge(const char *counter)
{
    return begins(counter, "TMP") || begins(counter, "VTG");
}

static void add_figure(struct counter_meter *meter, int event, int socket, const char *name)
{
    struct likwid_state *state = meter->state;
    *counters_add_columns(meter, 1) =
        (struct counter_column){.name = name, .joules = strstr(name, "PKG_ENERGY:") != NULL};
    state->figures = realloc(state->figures, meter->count * sizeof *state->figures);
    if (!state->figures)
        abort();
    state->figures[meter->count - 1] = (struct figure){event, socket};
}

static bool first_of_socket(const struct likwid_state *state, int i)
{
    for (int j = 0; j < i; j++)
        if (state->sockets[j] == state->sockets[i])
            return false;
    return true;
}

static void list_figures(struct counter_meter *meter)
{
    struct likwid_state *state = meter->state;
    const int events = state->likwid->perfmon_getNumberOfEvents(state->group);
    for (int e = 0; e < events; e++) {
        const char *event = state->likwid->perfmon_getEventName(state->group, e);
        const char *counter = state->likwid->perfmon_getCounterName(state->group, e);
        if (!event || !counter || is_gauge(counter))
            continue;
        if (is_core_counter(counter))
            add_figure(meter, e, -1, intern_format("%s:%s", event, counter));
        for (int i = 0; i < state->cpu_count && !is_core_counter(counter); i++)
            if (first_of_socket(state, i))
                add_figure(meter, e, state->sockets[i], intern_format("%s:%s@S%d", event, counter, state->sockets[i]));
    }
    state->sums = calloc(meter->count ? meter->count : 1, sizeof *state->sums);
    if (!state->sums)
        abort();
}

/* likwid reads the machine from where the calling thread may run: it gets the whole mask meanwhile. */
static void set_up_here(struct counter_meter *meter, const char *group, const struct team *team)
{
    struct likwid_state *state = meter->state;
    affinity_restore();
    state->group = set_up(state->likwid, group, state->cpus, state->cpu_count, &meter->reason);
    if (placement_bind_self(team->cpus[0]) < 0)
        meter->reason = "the thread that set likwid up could not be bound again";
}

static void likwid_open(struct counter_meter *meter, const char *argument, const struct team *team)
{
    static bool set_up_already; /* likwid can't begin anew within a process */
    struct likwid_state *state = calloc(1, sizeof *state);
    if (!state)
        abort();
    meter->state = state;
    state->likwid = likwid_library(&meter->reason);
    if (!state->likwid)
        return;
    if (!team->cpus)
        meter->reason = "threads are not bound, and likwid counts CPUs: choose another --place than none";
    else if (set_up_already)
        meter->reason = "likwid was set up for another team of this process";
    else if (getenv("LIKWID_FILEPATH"))
        meter->reason = "likwid-perfctr -m has the counters; its regions are the points";
    if (meter->reason)
        return;
    list_cpus(state, team);
    meter->reason = try_it(state->likwid, argument, state->cpus, state->cpu_count);
    if (meter->reason)
        return;
    set_up_already = true;
    set_up_here(meter, argument, team);
    if (!meter->reason)
        list_figures(meter);
}

static void likwid_close(struct counter_meter *meter)
{
    struct likwid_state *state = meter->state;
    free(state->cpus);
    free(state->sockets);
    free(state->figures);
    free(state->sums);
    free(state);
}

static void likwid_start(struct counter_meter *meter)
{
    const struct likwid_state *state = meter->state;
    int rc = state->likwid->perfmon_startCounters();
    if (rc < 0)
        refused(&meter->reason, "perfmon_startCounters", rc, NULL);
}

static void likwid_stop(struct counter_meter *meter)
{
    const struct likwid_state *state = meter->state;
    int rc = state->likwid->perfmon_stopCounters();
    if (rc < 0)
        refused(&meter->reason, "perfmon_stopCounters", rc, NULL);
    for (size_t f = 0; f < meter->count && rc >= 0; f++)
        for (int i = 0; i < state->cpu_count; i++)
            if (state->figures[f].socket < 0 || state->figures[f].socket == state->sockets[i])
                state->sums[f] += state->likwid->perfmon_getLastResult(state->group, state->figures[f].event, i);
}

static void likwid_take(struct counter_meter *meter, double *sums)
{
    const struct likwid_state *state = meter->state;
    for (size_t f = 0; f < meter->count; f++) {
        sums[f] += state->sums[f];
        state->sums[f] = 0;
    }
}

/* Tried with the group that every architecture of likwid has. */
static void likwid_list(json_t *entries)
{
    const char *reason;
    const struct likwid_library *likwid = likwid_library(&reason);
    const int cpu = placement_current_cpu();
    if (likwid)
        reason = try_it(likwid, "CLOCK", &cpu, 1);
    json_array_append_new(entries, json_pack("{s:s,s:s,s:o}", "name", "likwid:GROUP", "summary",
                                             "an event group of LIKWID (likwid-perfctr -a)", "reason",
                                             reason ? json_sprintf("not here: %s", reason) : json_null()));
}

const struct counter_provider counters_likwid = {
    .name = "likwid",
    .argument = "GROUP",
    .summary = "an event group of LIKWID's library",
    .selectable = true,
    .check = likwid_check,
    .open = likwid_open,
    .close = likwid_close,
    .start = likwid_start,
    .stop = likwid_stop,
    .take = likwid_take,
    .list = likwid_list,
};
