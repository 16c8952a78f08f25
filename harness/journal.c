/* SPDX-License-Identifier: Apache-2.0
 *
 * The journal of a run: one write a line, and no half line left behind by a full disk; see journal.h.
 */
#include "journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json_util.h"

struct journal {
    int descriptor;
    bool regular;   /* a file that can be cut; not so a pipe or device */
    int64_t length; /* end of the last whole line */
    char *path;
};

static int unwritten(struct error *error, int code)
{
    error->exit_code = EXIT_UNWRITTEN;
    return code;
}

/* Takes ownership of descriptor, also on failure. */
static int journal_adopt(int descriptor, const char *path, struct journal **journal, struct error *error)
{
    struct stat status;
    int code = 0;
    struct journal *made = NULL;
    if (fstat(descriptor, &status) != 0) {
        code = unwritten(error, error_system(error, errno, "results file %s", path));
        goto failed;
    }
    /* File systems without locks exist (some network ones); there a second writer is the user's own care. */
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        error_usage(error, "results file %s: another run is writing to it", path);
        code = unwritten(error, -EBUSY);
        goto failed;
    }
    made = malloc(sizeof *made);
    char *copy = strdup(path);
    if (!made || !copy) {
        free(copy);
        code = unwritten(error, error_system(error, ENOMEM, "results file %s", path));
        goto failed;
    }
    *made = (struct journal){.descriptor = descriptor, .regular = S_ISREG(status.st_mode), .path = copy};
    *journal = made;
    return 0;
failed:
    free(made);
    close(descriptor);
    return code;
}

/* Writes all of it, or leaves the file as it was. */
static int journal_write(struct journal *journal, const char *text, size_t size, struct error *error)
{
    size_t done = 0;
    while (done < size) {
        ssize_t written = write(journal->descriptor, text + done, size - done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            int number = written < 0 ? errno : ENOSPC;
            error_system(error, number, "results file %s: cannot write", journal->path);
            if (done > 0 && journal->regular && ftruncate(journal->descriptor, journal->length) != 0)
                error_prefix(error, 0, "half a line stays (%s), --resume will cut it", strerror(errno));
            return unwritten(error, -number);
        }
        done += (size_t)written;
    }
    journal->length += (int64_t)size;
    return 0;
}

int journal_append(struct journal *journal, const json_t *record, struct error *error)
{
    size_t size = json_dumpb(record, NULL, 0, JSON_LINE_FLAGS);
    char *text = size > 0 ? malloc(size + 1) : NULL;
    if (!text) {
        error_usage(error, "results file %s: a record cannot be encoded as JSON", journal->path);
        return unwritten(error, -EINVAL);
    }
    json_dumpb(record, text, size, JSON_LINE_FLAGS);
    text[size] = '\n';
    int code = journal_write(journal, text, size + 1, error);
    free(text);
    return code;
}

/* The schema comes first in the line, whatever the order of the caller's fields: a torn context is known by it. */
static int append_context(struct journal *journal, const json_t *context, struct error *error)
{
    json_t *line = json_object();
    json_object_set_new(line, "schema", json_string(CONTEXT_SCHEMA));
    json_object_update(line, (json_t *)context);
    int code = journal_append(journal, line, error);
    json_decref(line);
    return code;
}

int journal_create(const char *path, const json_t *context, struct journal **journal, struct error *error)
{
    struct journal *made = NULL;
    *journal = NULL;
    int descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor < 0)
        return unwritten(error, error_system(error, errno, "results file %s: cannot create", path));
    int code = journal_adopt(descriptor, path, &made, error);
    if (code)
        return code;
    struct stat status;
    if (fstat(descriptor, &status) == 0 && made->regular && status.st_size > 0) {
        error_usage(error, "results file %s already holds results: --resume goes on with them, or name another --out",
                    path);
        code = unwritten(error, -EEXIST);
    } else {
        code = append_context(made, context, error);
    }
    if (code)
        journal_close(made);
    else
        *journal = made;
    return code;
}

/* A point that another machine has measured is not measured here. */
static bool spans_machines(const struct results *results)
{
    size_t index;
    json_t *context;
    json_array_foreach(results->contexts, index, context)
    {
        const json_t *first = json_array_get(results->contexts, 0);
        if (strcmp(json_get_string(context, "machine_key", ""), json_get_string(first, "machine_key", "")) != 0)
            return true;
    }
    return false;
}

/* Reads what stands in the journal and cuts off what is torn. */
static int journal_recover(struct journal *journal, json_t **records, struct error *error)
{
    struct results results;
    int64_t whole_bytes;
    if (!journal->regular)
        return error_usage(error, "--resume %s: not a regular file", journal->path);
    int copy = fcntl(journal->descriptor, F_DUPFD_CLOEXEC, 0);
    FILE *stream = copy >= 0 ? fdopen(copy, "r") : NULL;
    if (!stream) {
        int number = errno;
        if (copy >= 0)
            close(copy);
        return unwritten(error, error_system(error, number, "--resume %s", journal->path));
    }
    int code = results_read_stream(stream, journal->path, &results, &whole_bytes, error);
    fclose(stream);
    if (code)
        return error_prefix(error, code, "--resume");
    if (spans_machines(&results)) {
        results_release(&results);
        return error_usage(error, "--resume %s: results of several machines, merged: resume the run's own file",
                           journal->path);
    }
    if (results.torn && ftruncate(journal->descriptor, whole_bytes) != 0) {
        code = error_system(error, errno, "--resume %s: cannot cut off the torn last line", journal->path);
        results_release(&results);
        return unwritten(error, code);
    }
    journal->length = whole_bytes;
    *records = json_incref(results.records);
    results_release(&results);
    return 0;
}

int journal_resume(const char *path, const json_t *context, struct journal **journal, json_t **records,
                   struct error *error)
{
    struct journal *made = NULL;
    *journal = NULL;
    *records = NULL;
    int descriptor = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
    if (descriptor < 0) {
        int number = errno;
        int code = error_system(error, number, "--resume %s", path);
        bool no_such_file = number == ENOENT || number == ENOTDIR || number == EISDIR;
        error->exit_code = no_such_file ? EXIT_USAGE : EXIT_UNWRITTEN;
        return code;
    }
    int code = journal_adopt(descriptor, path, &made, error);
    if (code)
        return code;
    code = journal_recover(made, records, error);
    if (code == 0)
        code = append_context(made, context, error);
    if (code) {
        journal_close(made);
        json_decref(*records);
        *records = NULL;
    } else {
        *journal = made;
    }
    return code;
}

void journal_close(struct journal *journal)
{
    if (!journal)
        return;
    /* Every line is in the page cache since its write: only a crash of the machine could still lose it. */
    fdatasync(journal->descriptor);
    close(journal->descriptor);
    free(journal->path);
    free(journal);
}
