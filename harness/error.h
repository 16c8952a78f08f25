/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors as values: a function that can fail returns 0 or -errno and leaves a one-line message here. Nothing below
 * main prints it.
 */
#ifndef HARNESS_ERROR_H
#define HARNESS_ERROR_H

/* Exit codes that users rely on. */
enum exit_code {
    EXIT_OK = 0,
    EXIT_WRONG = 1, /* a wrong result, or a point failed */
    EXIT_USAGE = 2, /* usage, bad input file */
    EXIT_REGRESSION = 3,
    EXIT_INCONCLUSIVE = 4, /* too noisy, or not comparable */
    EXIT_UNWRITTEN = 5,    /* results could not be written */
    EXIT_NOTHING_RAN = 77,
    EXIT_INTERRUPTED = 130
};

struct error {
    enum exit_code exit_code; /* what the program should end with if nobody handles it */
    char text[1024];          /* one line, no newline, names the flag, file, line and the value that was wrong */
};

/* The user asked for something that can't be: bad flag, bad file, bad value. Returns -EINVAL. */
int error_usage(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The system refused: number is an errno value; its text is appended. exit_code EXIT_WRONG unless changed after.
 * Returns -number. */
int error_system(struct error *error, int number, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Something went wrong that no text of errno's describes; number is for callers alone. exit_code EXIT_WRONG. Returns
 * -number. */
int error_wrong(struct error *error, int number, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* This machine can't do it, though the request is sound. exit_code EXIT_NOTHING_RAN. Returns -ENOTSUP. */
int error_machine(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts "prefix: " before the text already there. Returns code unchanged. */
int error_prefix(struct error *error, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
