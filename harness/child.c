/* SPDX-License-Identifier: Apache-2.0
 *
 * Starting, ending and mourning child processes; see child.h.
 */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "intern.h"
#include "isa.h"
#include "placement.h"
#include "topology.h"

extern char **environ;

enum { MOST_ARGUMENTS = 64 }; /* of a program */

static const char *const role_words[] = {[CHILD_WORKER] = "@worker", [CHILD_REFEREE] = "@referee"};

static int role_run(enum child_role role, int in, int out, int segment)
{
    return role == CHILD_WORKER ? worker_main(in, out, segment) : referee_main(in, out, segment);
}

/* OpenMP settings that a user exported for other programs must not change what is measured here: teams have the size
 * and binding that the placement says. */
static void clean_environment(void)
{
    static const char *const prefixes[] = {"OMP_", "GOMP_", "KMP_"};
    for (size_t p = 0; p < sizeof prefixes / sizeof *prefixes; p++)
        for (char **entry = environ; *entry;) {
            const char *equals = strchr(*entry, '=');
            if (!equals || strncmp(*entry, prefixes[p], strlen(prefixes[p])) != 0) {
                entry++;
                continue;
            }
            char name[256];
            snprintf(name, sizeof name, "%.*s", (int)(equals - *entry), *entry);
            if (unsetenv(name) < 0)
                entry++;
        }
    setenv("OMP_DYNAMIC", "false", 1);
    /* Threads spin for about a millisecond between calls, then sleep: calls follow each other without the cost of a
     * wake-up, and the team of a waiting worker leaves the CPUs to the one that measures. */
    setenv("GOMP_SPINCOUNT", "200000", 1);
    setenv("KMP_BLOCKTIME", "1", 1);
}

static void become_child(enum child_role role, int in, int out, int segment, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1); /* the parent ended before the line above */
    signal(SIGINT, SIG_IGN);
    int null = open("/dev/null", O_RDONLY);
    if (null >= 0)
        dup2(null, STDIN_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    if (isa_emulated())
        _exit(role_run(role, in, out, segment));
    clean_environment();
    affinity_restore(); /* an OpenMP runtime may have bound this process before main() */
    char numbers[3][16];
    snprintf(numbers[0], sizeof numbers[0], "%d", in);
    snprintf(numbers[1], sizeof numbers[1], "%d", out);
    snprintf(numbers[2], sizeof numbers[2], "%d", segment);
    char *arguments[] = {"attnbench", (char *)role_words[role], numbers[0], numbers[1], numbers[2], NULL};
    execv("/proc/self/exe", arguments);
    _exit(127);
}

/* A pipe to the child and one from it. On failure both are closed. */
static int make_pipes(int request[2], int reply[2], struct error *error)
{
    if (pipe(request) < 0)
        return error_system(error, errno, "cannot make a pipe");
    if (pipe(reply) < 0) {
        int number = errno;
        close(request[0]);
        close(request[1]);
        return error_system(error, number, "cannot make a pipe");
    }
    /* Our ends must not leak into children that are started later: they would keep each other's pipes open. */
    fcntl(request[1], F_SETFD, FD_CLOEXEC);
    fcntl(reply[0], F_SETFD, FD_CLOEXEC);
    return 0;
}

/* The parent's side of a fork that returned pid. */
static int adopt(pid_t pid, enum child_role role, const int request[2], const int reply[2], struct child *child,
                 struct error *error)
{
    int number = errno;
    close(request[0]);
    close(reply[1]);
    if (pid < 0) {
        close(request[1]);
        close(reply[0]);
        return error_system(error, number, "cannot start a process");
    }
    *child = (struct child){.pid = pid, .role = role, .to = request[1], .from = {.fd = reply[0]}};
    return 0;
}

int child_start(enum child_role role, const struct exchange *exchange, struct child *child, struct error *error)
{
    int request[2], reply[2];
    int rc = make_pipes(request, reply, error);
    if (rc < 0)
        return rc;
    pid_t parent = getpid();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close(request[1]);
        close(reply[0]);
        become_child(role, request[0], reply[1], exchange->segment, parent);
    }
    return adopt(pid, role, request, reply, child, error);
}

static void become_program(const struct child_program *program, int in, int out, pid_t parent)
{
    char threads[16];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    setpgid(0, 0); /* what it starts itself is stopped and ends with it */
    signal(SIGINT, SIG_IGN);
    signal(SIGTTOU, SIG_IGN); /* it may print though it is in the background */
    signal(SIGPIPE, SIG_DFL);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    if (in > STDERR_FILENO)
        close(in);
    if (out > STDERR_FILENO)
        close(out);
#ifdef SYS_close_range
    syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0); /* nor what this program was started with is theirs */
#endif
    clean_environment();
    snprintf(threads, sizeof threads, "%d", program->threads);
    setenv("OMP_NUM_THREADS", threads, 1);
    setenv("OMP_PROC_BIND", "false", 1); /* its threads are bound from outside, when it is known which ones work */
    if (program->peer_path)
        setenv("ATTNBENCH_PEER_PATH", program->peer_path, 1);
    if (program->cpus)
        placement_bind_thread(0, program->cpus, program->threads);
    if (strcmp(program->argv[0], "@peer") == 0) {
        char *argv[MOST_ARGUMENTS + 2] = {"attnbench"};
        for (int a = 0; a < MOST_ARGUMENTS && program->argv[a]; a++)
            argv[a + 1] = program->argv[a];
        execv("/proc/self/exe", argv);
    } else {
        execvp(program->argv[0], program->argv);
    }
    _exit(127);
}

int child_spawn(const struct child_program *program, struct child *child, struct error *error)
{
    int request[2], reply[2];
    int rc = make_pipes(request, reply, error);
    if (rc < 0)
        return rc;
    pid_t parent = getpid();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        become_program(program, request[0], reply[1], parent);
    return adopt(pid, CHILD_PROGRAM, request, reply, child, error);
}

int child_send(struct child *child, json_t *request)
{
    return lines_write(child->to, request);
}

static int release(struct child *child)
{
    int status = 0;
    close(child->to);
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    close(child->from.fd);
    lines_release(&child->from);
    *child = (struct child){.role = child->role, .to = -1, .from = {.fd = -1}};
    return status;
}

void child_kill(struct child *child)
{
    if (child->pid <= 0)
        return;
    kill(child->pid, SIGKILL);
    release(child);
}

void child_stop(struct child *child)
{
    if (child->pid > 0)
        release(child);
}

const char *child_epitaph(struct child *child)
{
    if (child->pid <= 0)
        return "was not running";
    int status = release(child);
    if (WIFSIGNALED(status))
        return intern_format("killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    return intern_format("ended with status %d", WEXITSTATUS(status));
}

int child_main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "@peer") == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        return peer_main(argc - 2, argv + 2);
    }
    if (argc != 5)
        return -1;
    for (int role = CHILD_WORKER; role <= CHILD_REFEREE; role++)
        if (strcmp(argv[1], role_words[role]) == 0) {
            /* The parent may have ended between its fork and this program's start: then the pipe's end tells. */
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (int a = 2; a <= 4; a++) /* programs that the worker starts must not write into them */
                fcntl(atoi(argv[a]), F_SETFD, FD_CLOEXEC);
            return role_run((enum child_role)role, atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
        }
    return -1;
}
