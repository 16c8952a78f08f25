/* SPDX-License-Identifier: Apache-2.0
 *
 * Loading the two sides of a duet, so that what lies where is chance in every process; see worker_duet.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "file_copy.h"
#include "intern.h"
#include "json_util.h"
#include "plugin.h"
#include "registry.h"
#include "worker_duet.h"

enum { MOST_SHUFFLED = 4096 /* pages */ };
static const char *const prefixes[SIDES] = {"a:", "b:"};

/* Takes pages from the kernel and gives back every second one, so that the next ones that it hands out are not those of
 * the process before. */
static void shuffle_pages(struct duet *duet)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), count = 64 + worker_duet_draw(duet) % MOST_SHUFFLED;
    unsigned char *pages = mmap(NULL, count * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return;
    madvise(pages, count * page, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < count; i++)
        pages[i * page] = 1;
    for (size_t i = 0; i < count; i++)
        if (worker_duet_draw(duet) & 1)
            munmap(pages + i * page, page);
}

/* Its constructors and its table are its own code already. */
static int open_library(struct duet *duet, int side, const char *path, struct plugin *plugin, struct error *error)
{
    worker_turn(duet->worker, side);
    const int rc = plugin_open(path, plugin, error);
    worker_turn(duet->worker, -1);
    return rc;
}

/* Opens a copy of the library. A process tends to get the pages of the one before, and those of the page cache stay for
 * hours: with the sets of a cache that code and data share, identical files then differ by the same 0.1 to 0.2 % in
 * every process of a duet (F = 2.2 between 17 duets of 8; from pages drawn anew 0.9). A library that wants to be opened
 * where it lies is. The descriptor stays open: the loader tells libraries by their paths, and would take the next copy
 * under the same number for this one. */
static int open_copy(struct duet *duet, int side, const char *path, struct plugin *plugin, struct error *error)
{
    int copy;
    shuffle_pages(duet);
    int rc = file_copy(path, intern_format("attnbench-%s%s", prefixes[side], path), &copy, error);
    if (rc == 0)
        rc = open_library(duet, side, intern_format("/proc/self/fd/%d", copy), plugin, error);
    return rc < 0 ? open_library(duet, side, path, plugin, error) : 0;
}

/* The kernels of a library join the registry behind a prefix, so that two builds of one kernel can stand beside each
 * other. The copies live as long as the process. */
static int add_library(struct duet *duet, int side, const char *path, struct error *error)
{
    const char *prefix = prefixes[side];
    struct plugin plugin = {0};
    int rc = open_copy(duet, side, path, &plugin, error);
    const struct registry_origin origin = {REGISTRY_PLUGIN, intern_format("plugin:%s%s", prefix, path), NULL};
    for (int k = 0; k < plugin.count && rc == 0; k++) {
        struct attn_kernel *copy = malloc(sizeof *copy);
        if (!copy)
            return error_system(error, ENOMEM, "%s", path);
        *copy = *plugin.kernels[k];
        copy->name = intern_format("%s%s", prefix, copy->name);
        rc = registry_add(copy, &origin, error);
    }
    return rc;
}

int worker_duet_load(struct duet *duet, const json_t *request, struct error *error)
{
    const json_t *sides = json_object_get(request, "sides");
    const int first = (int)json_get_int(request, "load_first", A);
    int rc = 0;
    registry_run_foreign();
    duet->offset = malloc(64 * (1 + worker_duet_draw(duet) % 16384));
    for (int i = 0; i < SIDES && rc == 0; i++) {
        const int s = i ^ first;
        const json_t *side = json_array_get(sides, (size_t)s);
        const char *library = json_get_string(side, "library", NULL);
        const char *kernel = json_get_string(side, "kernel", "");
        duet->sides[s].label = intern(json_get_string(side, "label", kernel));
        duet->sides[s].kernel = library ? intern_format("%s%s", prefixes[s], kernel) : intern(kernel);
        if (library)
            rc = add_library(duet, s, library, error);
    }
    return rc;
}
