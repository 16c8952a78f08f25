/* SPDX-License-Identifier: Apache-2.0
 *
 * likwid's Marker API: under `likwid-perfctr -m` the clocked samples of each point are a region named by the point's
 * id.
 *
 * likwid-perfctr reads one file when the program has ended, and likwid writes it once a process; here several workers
 * measure. Each writes a file of its own when it ends, and puts its regions into likwid-perfctr's file behind those of
 * the workers before it.
 */
#include "counters_marker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "counters.h"
#include "intern.h"
#include "likwid_library.h"

static const char file_variable[] = "LIKWID_FILEPATH";
enum { CLOSE_SECONDS = 20 };

struct marker_state {
    const struct likwid_library *likwid;
    const char *region;
    int threads;
    bool started; /* once at least */
};

bool marker_wanted(void)
{
    return getenv(file_variable) && getenv("LIKWID_MODE");
}

static bool marker_implied(bool counting)
{
    (void)counting;
    return marker_wanted();
}

static void marker_open(struct counter_meter *meter, const char *argument, const struct team *team)
{
    (void)argument;
    struct marker_state *state = calloc(1, sizeof *state);
    if (!state)
        abort();
    *state = (struct marker_state){.likwid = likwid_library(&meter->reason), .threads = team->threads};
    meter->state = state;
    if (!state->likwid)
        return;
    unsetenv("LIKWID_PIN"); /* threads stay where the placement has them */
    struct likwid_silence silence;
    likwid_quiet(&silence);
    state->likwid->markerInit();
    /* It returns nothing: whether it works shows with the first region. */
    const int rc = state->likwid->markerRegisterRegion("attnbench");
    const char *said = likwid_loud(&silence);
    if (rc < 0)
        meter->reason = intern_format("the Marker API did not start: %s", said ? said : "no word why");
}

static void marker_turn(struct counter_meter *meter, const char *region)
{
    struct marker_state *state = meter->state;
    state->region = region;
#pragma omp parallel num_threads(state->threads)
    state->likwid->markerRegisterRegion(region);
}

static void marker_start(struct counter_meter *meter)
{
    struct marker_state *state = meter->state;
    state->started = true;
#pragma omp parallel num_threads(state->threads)
    state->likwid->markerStartRegion(state->region);
}

static void marker_stop(struct counter_meter *meter)
{
    const struct marker_state *state = meter->state;
#pragma omp parallel num_threads(state->threads)
    state->likwid->markerStopRegion(state->region);
}

/* A file of likwid's markers: "threads regions groups", a line "id:tag" a region, then lines that begin with a region's
 * id. */
struct marker_file {
    char *text;
    int threads, regions, groups;
    const char *tags, *rows;
};

static bool marker_read(const char *path, struct marker_file *file)
{
    size_t room = 0;
    FILE *stream = fopen(path, "re");
    *file = (struct marker_file){0};
    if (!stream)
        return false;
    bool whole = getdelim(&file->text, &room, '\0', stream) > 0 &&
                 sscanf(file->text, "%d %d %d", &file->threads, &file->regions, &file->groups) == 3;
    fclose(stream);
    const char *line = whole ? strchr(file->text, '\n') : NULL;
    file->tags = line ? line + 1 : NULL;
    for (int r = 0; line && r < file->regions; r++)
        line = strchr(line + 1, '\n');
    file->rows = line ? line + 1 : NULL;
    return line != NULL;
}

/* Writes lines up to `end`, with `shift` added to the region's id that each begins with. */
static void write_shifted(FILE *stream, const char *line, const char *end, int shift)
{
    while (line && *line && line < end) {
        char *rest;
        const long id = strtol(line, &rest, 10);
        const int length = (int)strcspn(rest, "\n");
        fprintf(stream, "%ld%.*s\n", id + shift, length, rest);
        line = rest[length] ? rest + length + 1 : NULL;
    }
}

int marker_merge(const char *path, const char *more)
{
    struct marker_file first = {0}, second = {0};
    int rc = 0;
    if (!marker_read(more, &second)) {
        rc = -ENODATA;
    } else if (access(path, F_OK) != 0 || !marker_read(path, &first)) {
        rc = rename(more, path) == 0 ? 0 : -errno;
    } else {
        FILE *stream = fopen(path, "we");
        rc = stream ? 0 : -errno;
        if (stream) {
            fprintf(stream, "%d %d %d\n", first.threads > second.threads ? first.threads : second.threads,
                    first.regions + second.regions, first.groups);
            write_shifted(stream, first.tags, first.rows, 0);
            write_shifted(stream, second.tags, second.rows, first.regions);
            write_shifted(stream, first.rows, first.rows + strlen(first.rows), 0);
            write_shifted(stream, second.rows, second.rows + strlen(second.rows), first.regions);
            rc = fclose(stream) == 0 ? 0 : -errno;
        }
        unlink(more);
    }
    free(first.text);
    free(second.text);
    return rc;
}

static void marker_close(struct counter_meter *meter)
{
    struct marker_state *state = meter->state;
    if (state->started) {
        const char *path = intern(getenv(file_variable));
        const char *own = intern_format("%s.%d", path, (int)getpid());
        struct likwid_silence silence;
        alarm(CLOSE_SECONDS); /* a process that ends must not hang in likwid */
        setenv(file_variable, own, 1);
        likwid_quiet(&silence);
        state->likwid->markerClose();
        likwid_loud(&silence);
        setenv(file_variable, path, 1);
        marker_merge(path, own);
        alarm(0);
    }
    free(state);
}

const struct counter_provider counters_marker = {
    .name = "likwid-marker",
    .summary = "likwid's Marker API under likwid-perfctr -m",
    .implied = marker_implied,
    .open = marker_open,
    .close = marker_close,
    .turn = marker_turn,
    .start = marker_start,
    .stop = marker_stop,
};
