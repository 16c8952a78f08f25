/* SPDX-License-Identifier: Apache-2.0
 *
 * Counting by perf_event_open: every event once for each thread of the team, inherited by threads that those start. A
 * thread's hardware events form a group where the PMU takes them together; where they took turns on it, counts are
 * scaled by the share of time that they were counted, and the record says so.
 */
#include <errno.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "counters.h"
#include "intern.h"
#include "perf_events.h"
#include "values.h"

enum { MOST_EVENTS = 64 };

/* What a read tells with our read_format; counts go up from the opening on. */
struct reading {
    uint64_t value, enabled, running;
};

struct perf_state {
    int threads;
    size_t count;
    struct perf_event events[MOST_EVENTS];
    int *fds;             /* [threads][count]; -1: refused */
    struct reading *last; /* [threads][count] at the last take */
};

/* Splits "a+b" into events. The number of them, or -EINVAL. */
static int read_events(const char *argument, struct perf_event *events, struct error *error)
{
    int count = 0;
    for (const char *name = argument; name; name = strchr(name, '+') ? strchr(name, '+') + 1 : NULL) {
        char shown[QUOTED_BYTES];
        const size_t length = strcspn(name, "+");
        const char *text = intern_format("%.*s", (int)length, name);
        if (count == MOST_EVENTS)
            return error_usage(error, "perf: more than %d events", MOST_EVENTS);
        if (!perf_event_find(name, length, &events[count]))
            return error_usage(error, "perf has no event %s (attnbench list counters)", quoted(text, shown));
        for (int i = 0; i < count; i++)
            if (events[i].name == events[count].name)
                return error_usage(error, "perf: event %s stands there twice", quoted(text, shown));
        count++;
    }
    return count;
}

static int perf_check(const char *argument, struct error *error)
{
    struct perf_event events[MOST_EVENTS];
    int count = read_events(argument, events, error);
    return count < 0 ? count : 0;
}

/* One descriptor for each thread and event may be more than a process has by default. */
static void want_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* Into the group where the PMU can take it, else alone; with kernel mode where that is allowed. */
static int open_one(const struct perf_event *event, pid_t tid, int group, bool *user_only)
{
    int fd = perf_event_open_thread(event, tid, group, *user_only);
    if ((fd == -EACCES || fd == -EPERM) && !*user_only && !event->in_kernel) {
        int allowed = perf_event_open_thread(event, tid, group, true);
        if (allowed >= 0 || allowed == -EINVAL)
            *user_only = true;
        fd = allowed >= 0 || allowed == -EINVAL ? allowed : fd;
    }
    if (fd == -EINVAL && group >= 0)
        fd = perf_event_open_thread(event, tid, -1, *user_only);
    return fd;
}

/* Opens event e for every thread; leaders: the group of each. False and the column's reason if one refuses. */
static bool open_event(struct perf_state *state, size_t e, const pid_t *tids, int *leaders, bool *user_only,
                       struct counter_column *column)
{
    const struct perf_event *event = &state->events[e];
    const bool grouped = event->type != PERF_TYPE_SOFTWARE;
    column->name = event->name;
    for (int t = 0; t < state->threads; t++) {
        int *fd = &state->fds[(size_t)t * state->count + e];
        *fd = open_one(event, tids[t], grouped ? leaders[t] : -1, user_only);
        if (*fd >= 0)
            continue;
        column->reason = perf_event_refusal(event, -*fd);
        for (*fd = -1; t-- > 0;) {
            fd -= state->count;
            close(*fd);
            *fd = -1;
        }
        return false;
    }
    for (int t = 0; t < state->threads && grouped; t++)
        if (leaders[t] < 0)
            leaders[t] = state->fds[(size_t)t * state->count + e];
    return true;
}

static void perf_open(struct counter_meter *meter, const char *argument, const struct team *team)
{
    struct perf_state *state = calloc(1, sizeof *state);
    struct error error;
    if (!state)
        abort();
    int count = read_events(argument, state->events, &error);
    const size_t cells = (size_t)team->threads * (size_t)(count > 0 ? count : 1);
    pid_t *tids = calloc((size_t)team->threads, sizeof *tids);
    int *leaders = malloc((size_t)team->threads * sizeof *leaders);
    state->threads = team->threads;
    state->count = count > 0 ? (size_t)count : 0;
    state->fds = malloc(cells * sizeof *state->fds);
    state->last = calloc(cells, sizeof *state->last);
    if (!tids || !leaders || !state->fds || !state->last)
        abort();
    memset(state->fds, 0xff, cells * sizeof *state->fds);
    meter->state = state;
#pragma omp parallel num_threads(team->threads)
    tids[omp_get_thread_num()] = (pid_t)syscall(SYS_gettid);
    for (int t = 0; t < team->threads; t++)
        leaders[t] = -1;
    want_descriptors();
    struct counter_column *columns = counters_add_columns(meter, state->count + 1);
    bool user_only = false;
    for (size_t e = 0; e < state->count; e++) {
        bool narrowed = user_only;
        if (open_event(state, e, tids, leaders, &narrowed, &columns[e]) && narrowed)
            user_only = true;
    }
    if (user_only)
        meter->remark = "user mode alone was counted: perf_event_paranoid leaves the kernel's share out";
    columns[state->count] = (struct counter_column){.name = "scaled", .flag = true};
    free(tids);
    free(leaders);
}

static void perf_close(struct counter_meter *meter)
{
    struct perf_state *state = meter->state;
    for (size_t i = 0; i < (size_t)state->threads * state->count; i++)
        if (state->fds[i] >= 0)
            close(state->fds[i]);
    free(state->fds);
    free(state->last);
    free(state);
}

/* A group counts while its leader does: the leader, opened first, is switched on last and off first. */
static void perf_start(struct counter_meter *meter)
{
    const struct perf_state *state = meter->state;
    for (size_t i = (size_t)state->threads * state->count; i-- > 0;)
        if (state->fds[i] >= 0)
            ioctl(state->fds[i], PERF_EVENT_IOC_ENABLE, 0);
}

static void perf_stop(struct counter_meter *meter)
{
    const struct perf_state *state = meter->state;
    for (size_t i = 0; i < (size_t)state->threads * state->count; i++)
        if (state->fds[i] >= 0)
            ioctl(state->fds[i], PERF_EVENT_IOC_DISABLE, 0);
}

/* What one counter counted since the last take, NaN if it never ran; *scaled is set where it ran a part of the time. */
static double counted(struct reading *last, int fd, bool *scaled)
{
    struct reading now;
    if (read(fd, &now, sizeof now) != (ssize_t)sizeof now)
        return NAN;
    const double value = (double)(now.value - last->value), enabled = (double)(now.enabled - last->enabled),
                 running = (double)(now.running - last->running);
    *last = now;
    if (!(enabled > 0)) /* the thread had no CPU meanwhile */
        return value;
    *scaled |= running < enabled;
    return running > 0 ? value * enabled / running : NAN;
}

static void perf_take(struct counter_meter *meter, double *sums)
{
    struct perf_state *state = meter->state;
    bool scaled = false;
    for (size_t e = 0; e < state->count; e++) {
        for (int t = 0; t < state->threads && !meter->columns[e].reason; t++) {
            const size_t i = (size_t)t * state->count + e;
            const double value = counted(&state->last[i], state->fds[i], &scaled);
            if (isnan(value))
                meter->columns[e].reason = "it never got a counter: there are too few, or somebody else has them";
            sums[e] += value;
        }
    }
    sums[state->count] += scaled;
}

static void perf_list(json_t *entries)
{
    for (size_t e = 0; e < perf_events_count; e++) {
        bool user_only = false;
        int fd = open_one(&perf_events[e], 0, -1, &user_only);
        json_t *reason = json_null();
        if (fd < 0)
            reason = json_sprintf("not here: %s", perf_event_refusal(&perf_events[e], -fd));
        else
            close(fd);
        json_array_append_new(entries, json_pack("{s:o,s:s,s:o}", "name", json_sprintf("perf:%s", perf_events[e].name),
                                                 "summary", perf_events[e].summary, "reason", reason));
    }
    const struct perf_event raw = {.name = "rNNNN", .type = PERF_TYPE_RAW};
    json_array_append_new(
        entries,
        json_pack("{s:s,s:s,s:o}", "name", "perf:rNNNN", "summary",
                  "an event by the number in the PMU's manual, hexadecimal", "reason",
                  perf_core_pmu() ? json_null() : json_sprintf("not here: %s", perf_event_refusal(&raw, ENOENT))));
}

const struct counter_provider counters_perf = {
    .name = "perf",
    .argument = "EVENT+EVENT",
    .summary = "perf_event_open, summed over the threads",
    .selectable = true,
    .check = perf_check,
    .open = perf_open,
    .close = perf_close,
    .start = perf_start,
    .stop = perf_stop,
    .take = perf_take,
    .list = perf_list,
};
