/* SPDX-License-Identifier: Apache-2.0
 *
 * attnbench: finds the command, prints its error, ends with its exit code.
 */
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "build_info.h"
#include "child.h"
#include "commands.h"
#include "isa.h"

static void print_help(void)
{
    printf("attnbench: how fast attention runs on this CPU, and why\n\n"
           "usage: attnbench COMMAND [FLAGS]   (attnbench COMMAND --help lists the flags)\n\n");
    size_t width = 0;
    for (size_t c = 0; c < command_count; c++)
        width = strlen(commands[c].name) > width ? strlen(commands[c].name) : width;
    for (size_t c = 0; c < command_count; c++)
        printf("  %-*s %s\n", (int)width, commands[c].name, commands[c].summary);
    printf("\nexit codes: 0 ok, 1 wrong result or failed point, 2 usage or bad input file,\n"
           "            3 regression, 4 inconclusive, too noisy or not comparable,\n"
           "            5 results not written, 77 nothing could run here,\n"
           "            130 interrupted (results kept)\n");
}

static int run_command(int argc, char **argv)
{
    struct error error = {.exit_code = EXIT_WRONG};
    const char *problem = isa_check_environment();
    if (problem) {
        fprintf(stderr, "attnbench: %s\n", problem);
        return EXIT_USAGE;
    }
    const struct command *command = command_find(argv[1]);
    if (command) {
        int rc = command->run(argc - 1, argv + 1, &error);
        if (rc >= 0 && (fflush(stdout) != 0 || ferror(stdout))) {
            fprintf(stderr, "attnbench %s: stdout could not be written\n", argv[1]);
            return EXIT_UNWRITTEN;
        }
        if (rc >= 0)
            return rc;
        fprintf(stderr, "attnbench %s: %s\n", argv[1], error.text);
        return error.exit_code;
    }
    fprintf(stderr, "attnbench: no command is named '%s'; attnbench --help lists them\n", argv[1]);
    return EXIT_USAGE;
}

int main(int argc, char **argv)
{
    setlocale(LC_ALL, "C");   /* numbers in results look the same everywhere */
    signal(SIGPIPE, SIG_IGN); /* a child that died, or `| head`, is an error to handle */
    signal(SIGXFSZ, SIG_IGN); /* a full disk likewise */
    int status = child_main(argc, argv);
    if (status >= 0)
        return status;
    if (argc < 2) {
        fprintf(stderr, "attnbench: no command; attnbench --help lists them\n");
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        print_help();
        return EXIT_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("attnbench %s%s\n", *build_commit ? build_commit : "(unknown commit)",
               build_dirty > 0 ? " (modified)" : "");
        return EXIT_OK;
    }
    return run_command(argc, argv);
}
