/* SPDX-License-Identifier: Apache-2.0
 *
 * A fake /sys and /proc for a test: a folder under ATTNBENCH_FS_ROOT, made before each test and removed after it.
 */
#ifndef TESTS_FAKE_TREE_H
#define TESTS_FAKE_TREE_H

#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char root[64];

static inline int new_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "%s/attnbench-check-XXXXXX", P_tmpdir);
    return mkdtemp(root) && setenv("ATTNBENCH_FS_ROOT", root, 1) == 0 ? 0 : -1;
}

static inline int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status, (void)type, (void)walk;
    return remove(path);
}

static inline int drop_root(void **state)
{
    (void)state;
    unsetenv("ATTNBENCH_FS_ROOT");
    return nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* Writes a file of the fake tree, and the folders above it. */
static inline void put(const char *path, const char *text)
{
    char full[1024];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        assert_true(mkdir(full, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

#endif
