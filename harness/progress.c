/* SPDX-License-Identifier: Apache-2.0
 *
 * Progress on stderr; see output.h.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "json_util.h"
#include "output.h"
#include "record_text.h"
#include "text.h"

enum { LINE = 512, BAR = 20, ACTIVITY = 256 };

/* Redrawing more often than this costs the measured machine something and shows the eye nothing. */
static const double redraw_every_s = 0.1;

struct progress {
    size_t points, done, measured; /* measured: done and not skipped */
    bool quiet, terminal, ascii;
    double began_s, drawn_s;
    char activity[ACTIVITY];
};

static double now_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

struct progress *progress_begin(size_t points, bool quiet)
{
    struct progress *progress = calloc(1, sizeof *progress);
    if (!progress)
        return NULL;
    const char *terminal = getenv("TERM");
    progress->points = points;
    progress->quiet = quiet;
    progress->terminal = isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0;
    progress->ascii = !locale_is_utf8();
    progress->began_s = now_s();
    return progress;
}

/* "0:07", "12:34", "1:02:03". */
static void clock_text(double seconds, char *out, size_t size)
{
    long long whole = seconds > 0 && seconds < 1e15 ? (long long)(seconds + 0.5) : 0;
    if (whole >= 3600)
        snprintf(out, size, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
    else
        snprintf(out, size, "%lld:%02lld", whole / 60, whole % 60);
}

static size_t terminal_columns(void)
{
    struct winsize window;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0)
        return window.ws_col;
    return 80;
}

static void draw(struct progress *progress)
{
    char line[LINE], shown[LINE], elapsed[32], left[32];
    double now = now_s(), seconds = now - progress->began_s;
    size_t points = progress->points > 0 ? progress->points : 1;
    size_t filled = progress->done < points ? BAR * progress->done / points : BAR;
    char bar[BAR + 1];
    memset(bar, '-', BAR);
    memset(bar, '#', filled);
    bar[BAR] = '\0';
    clock_text(seconds, elapsed, sizeof elapsed);
    /* Skipped points take no time, so they tell nothing of how long the others will. */
    if (progress->measured > 0 && progress->done <= progress->points)
        clock_text(seconds / (double)progress->measured * (double)(progress->points - progress->done), left,
                   sizeof left);
    else
        snprintf(left, sizeof left, "-");
    snprintf(line, sizeof line, "[%s] %zu/%zu  %s  ETA %s  %s", bar, progress->done, progress->points, elapsed, left,
             progress->activity);
    /* The last column stays free: writing there would wrap. */
    text_fit(line, terminal_columns() - 1, shown, sizeof shown);
    if (progress->ascii)
        text_to_ascii(shown);
    fprintf(stderr, "\r%s\033[K", shown);
    fflush(stderr);
    progress->drawn_s = now;
}

void progress_activity(struct progress *progress, const char *text)
{
    if (!progress || progress->quiet || !progress->terminal)
        return;
    text_fit(text, ACTIVITY / 4, progress->activity, sizeof progress->activity);
    if (now_s() - progress->drawn_s >= redraw_every_s)
        draw(progress);
}

/* "avx512 bhq 2 thr  B 8  H 12  S 128  D 64  710.0 µs  182 GFLOP/s  77% of roof  ok". */
static void point_text(const json_t *record, char *out, size_t size)
{
    char figures[128] = "", time[TEXT_FIGURE], gflops[TEXT_FIGURE], roof[TEXT_FIGURE];
    enum record_status status = record_status(record);
    char *sizes = record_sizes(record);
    if (status == RECORD_OK) {
        text_time(json_get_number(record, "median_ns", NAN), time);
        text_number(json_get_number(record, "gflops", NAN), 3, 7, gflops);
        text_percent(json_get_number(record, "roof_fraction", NAN), roof);
        snprintf(figures, sizeof figures, "%s  %s GFLOP/s  %s of roof  ", time, gflops, roof);
    }
    snprintf(out, size, "%.40s %.20s %lld thr  %.200s  %s%s%s%s%.160s", json_get_string(record, "kernel", "?"),
             json_get_string(record, "schedule", "?"), (long long)json_get_int(record, "threads", 0), sizes, figures,
             record_status_name(status), status == RECORD_OK && record_noisy(record) ? ", noisy" : "",
             status == RECORD_OK ? "" : ": ", status == RECORD_OK ? "" : json_get_string(record, "reason", "?"));
    free(sizes);
}

void progress_point(struct progress *progress, const json_t *record)
{
    if (!progress)
        return;
    enum record_status status = record_status(record);
    progress->done++;
    progress->measured += status != RECORD_SKIPPED;
    bool is_bad = status == RECORD_WRONG || status == RECORD_FAILED;
    if (progress->quiet && !is_bad)
        return;
    if (!progress->terminal || is_bad) {
        char text[LINE], shown[LINE];
        point_text(record, text, sizeof text);
        text_fit(text, LINE, shown, sizeof shown);
        if (progress->ascii)
            text_to_ascii(shown);
        int digits = snprintf(NULL, 0, "%zu", progress->points);
        fprintf(stderr, "%s[%*zu/%zu] %s\n", progress->terminal ? "\r\033[K" : "", digits, progress->done,
                progress->points, shown);
    }
    if (progress->terminal && !progress->quiet)
        draw(progress);
}

void progress_end(struct progress *progress)
{
    if (progress && progress->terminal && !progress->quiet)
        fputs("\r\033[K", stderr);
    free(progress);
}
