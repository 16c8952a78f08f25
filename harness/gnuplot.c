/* SPDX-License-Identifier: Apache-2.0
 *
 * Running gnuplot; see gnuplot.h.
 */
#include "gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { OUTPUT_MOST = 16 << 20, COMPLAINT_MOST = 64 << 10, VERSION_TIMEOUT_MS = 10000 };

char *gnuplot_find(void)
{
    const char *path = getenv("PATH");
    while (path && *path) {
        const size_t length = strcspn(path, ":");
        char *candidate = NULL;
        struct stat status;
        /* An empty entry of PATH would mean the current folder: not where a program of the system stands. */
        if (length > 0 && asprintf(&candidate, "%.*s/gnuplot", (int)length, path) < 0)
            return NULL;
        if (candidate && stat(candidate, &status) == 0 && S_ISREG(status.st_mode) && access(candidate, X_OK) == 0)
            return candidate;
        free(candidate);
        path += length + (path[length] == ':');
    }
    return NULL;
}

void gnuplot_quote(FILE *script, const char *text)
{
    fputc('\'', script);
    for (; *text; text++) {
        if (*text == '\'')
            fputc('\'', script); /* doubled */
        fputc((unsigned char)*text < ' ' || *text == '\177' ? ' ' : *text, script);
    }
    fputc('\'', script);
}

/* What a child writes to one of its streams. */
struct stream {
    int fd; /* -1: at its end */
    char *text;
    size_t used, most;
};

/* 1: more may come; 0: at its end; -errno. */
static int stream_read(struct stream *stream)
{
    enum { STEP = 64 << 10 };
    char *grown = realloc(stream->text, stream->used + STEP + 1);
    if (!grown)
        return -ENOMEM;
    stream->text = grown;
    const ssize_t got = read(stream->fd, stream->text + stream->used, STEP);
    if (got < 0)
        return errno == EINTR || errno == EAGAIN ? 1 : -errno;
    stream->used += (size_t)got;
    stream->text[stream->used] = '\0';
    if (stream->used > stream->most)
        return -EFBIG;
    if (got > 0)
        return 1;
    close(stream->fd);
    stream->fd = -1;
    return 0;
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Reads both streams to their ends. end: by now_ms. */
static int streams_read(struct stream *streams, int64_t end)
{
    while (streams[0].fd >= 0 || streams[1].fd >= 0) {
        struct pollfd polled[2] = {{streams[0].fd, POLLIN, 0}, {streams[1].fd, POLLIN, 0}};
        const int64_t left = end - now_ms();
        if (left <= 0)
            return -ETIMEDOUT;
        if (poll(polled, 2, (int)left) < 0 && errno != EINTR)
            return -errno;
        for (int i = 0; i < 2; i++) {
            const int rc = streams[i].fd >= 0 && polled[i].revents ? stream_read(&streams[i]) : 0;
            if (rc < 0)
                return rc;
        }
    }
    return 0;
}

/* The environment without what changes gnuplot's ways or the form of its numbers. NULL-terminated, malloc'd. */
static char **plain_environment(void)
{
    static const char *const prefixes[] = {"LC_", "LANG", "GNUTERM", "GNUPLOT", "FIT_"};
    size_t count = 0, kept = 0;
    while (environ && environ[count])
        count++;
    char **plain = calloc(count + 2, sizeof *plain);
    for (size_t i = 0; plain && i < count; i++) {
        bool keep = true;
        for (size_t p = 0; p < sizeof prefixes / sizeof *prefixes; p++)
            keep = keep && strncmp(environ[i], prefixes[p], strlen(prefixes[p])) != 0;
        if (keep)
            plain[kept++] = environ[i];
    }
    if (plain)
        plain[kept] = "LC_ALL=C";
    return plain;
}

/* Starts program with the three descriptors, in a process group of its own so that all of it can be killed. 0 or
 * -errno. */
static int start(const char *program, char *const *arguments, const int streams[3], pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, broken_pipe;
    char **environment = plain_environment();
    if (!environment)
        return -ENOMEM;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    sigemptyset(&none);
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE); /* which this program ignores */
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &broken_pipe);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int rc = 0;
    for (int i = 0; i < 3 && rc == 0; i++)
        rc = posix_spawn_file_actions_adddup2(&actions, streams[i], i);
    if (rc == 0)
        rc = posix_spawn(pid, program, &actions, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    free(environment);
    return -rc;
}

/* A file in memory that holds the script, at its beginning; -errno. */
static int script_open(const char *script)
{
    const int fd = memfd_create("script", MFD_CLOEXEC);
    const size_t length = strlen(script);
    size_t written = 0;
    while (fd >= 0 && written < length) {
        const ssize_t rc = write(fd, script + written, length - written);
        if (rc < 0 && errno != EINTR) {
            const int number = errno;
            close(fd);
            return -number;
        }
        written += rc > 0 ? (size_t)rc : 0;
    }
    if (fd < 0)
        return -errno;
    lseek(fd, 0, SEEK_SET);
    return fd;
}

/* Waits for the end of a child that has closed its streams. 0 or -ETIMEDOUT. */
static int await(pid_t pid, int64_t end, int *status)
{
    for (;;) {
        const pid_t ended = waitpid(pid, status, WNOHANG);
        if (ended != 0)
            return ended < 0 ? -errno : 0;
        if (now_ms() >= end)
            return -ETIMEDOUT;
        nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    }
}

static int converse(const char *program, char *const *arguments, const char *script, int timeout_ms,
                    struct stream *streams, int *status)
{
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    pid_t pid = 0;
    const int in = script_open(script);
    int rc = in < 0 ? in : 0;
    if (rc == 0 && (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0))
        rc = -errno;
    if (rc == 0)
        rc = start(program, arguments, (int[]){in, out[1], err[1]}, &pid);
    if (in >= 0)
        close(in);
    for (int i = 0; i < 2; i++) {
        int *ends = i ? err : out;
        if (ends[1] >= 0)
            close(ends[1]);
        streams[i].fd = ends[0];
    }
    if (rc == 0) {
        const int64_t end = now_ms() + timeout_ms;
        rc = streams_read(streams, end);
        if (rc == 0)
            rc = await(pid, end, status);
        if (rc < 0) {
            kill(-pid, SIGKILL);
            while (waitpid(pid, status, 0) < 0 && errno == EINTR)
                continue;
        }
    }
    for (int i = 0; i < 2; i++)
        if (streams[i].fd >= 0)
            close(streams[i].fd);
    return rc;
}

/* The line of gnuplot's complaint that says what is wrong: "line 3: undefined variable". Cuts text. */
static const char *complaint(char *text)
{
    char *best = text, *state = NULL;
    for (char *line = text ? strtok_r(text, "\n", &state) : NULL; line; line = strtok_r(NULL, "\n", &state)) {
        while (*line == ' ' || *line == '\t' || *line == '"')
            line++;
        if (*line && *line != '^')
            best = line; /* it echoes the command first and explains last */
    }
    return best && *best ? best : "it said nothing";
}

static int run(const char *program, char *const *arguments, const char *script, int timeout_ms, char **output,
               struct error *error)
{
    struct stream streams[2] = {{.fd = -1, .most = OUTPUT_MOST}, {.fd = -1, .most = COMPLAINT_MOST}};
    int status = 0, rc = converse(program, arguments, script, timeout_ms, streams, &status);
    if (rc == -ETIMEDOUT)
        error_system(error, ETIMEDOUT, "%.300s did not end within %d s and was killed", program, timeout_ms / 1000);
    else if (rc < 0)
        error_system(error, -rc, "cannot run %.300s", program);
    else if (WIFSIGNALED(status))
        rc = error_system(error, EIO, "%.300s was killed by signal %d", program, WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        rc = error_system(error, EIO, "%.300s ended with status %d: %.400s", program, WEXITSTATUS(status),
                          complaint(streams[1].text));
    else if (!streams[0].text || streams[0].used == 0)
        rc = error_system(error, EIO, "%.300s wrote nothing: %.400s", program, complaint(streams[1].text));
    free(streams[1].text);
    if (rc == 0)
        *output = streams[0].text;
    else
        free(streams[0].text);
    return rc;
}

int gnuplot_run(const char *program, const char *script, int timeout_ms, char **output, struct error *error)
{
    char *arguments[] = {"gnuplot", "-d", "-", NULL};
    return run(program, arguments, script, timeout_ms, output, error);
}

int gnuplot_version(const char *program, char **version, struct error *error)
{
    char *arguments[] = {"gnuplot", "--version", NULL}, *text = NULL;
    int major = 0;
    if (run(program, arguments, "", VERSION_TIMEOUT_MS, &text, error) || !text) {
        error->exit_code = EXIT_NOTHING_RAN;
        return -ENOTSUP;
    }
    text[strcspn(text, "\n")] = '\0';
    if (sscanf(text, "gnuplot %d.", &major) == 1 && major >= 5) {
        *version = text;
        return 0;
    }
    if (major)
        error_machine(error, "%.300s is %.100s: 5.0 or newer is needed", program, text);
    else
        error_machine(error, "%.300s is no gnuplot: it calls itself '%.100s'", program, text);
    free(text);
    return -ENOTSUP;
}
