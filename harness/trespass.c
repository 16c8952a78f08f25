/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking for threads, processes and files; see trespass.h.
 */
#include "trespass.h"

#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include "intern.h"

int trespass_threads(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        count += entry->d_name[0] != '.';
    if (folder)
        closedir(folder);
    return count;
}

const char *trespass_found(bool own_threads, int threads_before)
{
    siginfo_t info;
    const int left = own_threads ? 0 : trespass_threads() - threads_before;
    if (left > 0)
        return intern_format("left %d thread%s running", left, left > 1 ? "s" : "");
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0) /* there is one to wait for, now or later */
        return "left a process running";
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            return intern_format("closed file descriptor %d, which is not its own", fd);
    return NULL;
}
