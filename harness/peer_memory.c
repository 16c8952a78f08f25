/* SPDX-License-Identifier: Apache-2.0
 *
 * The tensors that worker and peers share; see peer.h. The memory has no name left when a peer learns of it: it is
 * opened through the worker's file descriptor, so that no kill can leave it behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "intern.h"
#include "peer.h"

enum { ALIGNMENT = 4096, NAMED = 7 };

bool peer_tensor_at(const struct operands *operands, int index, struct peer_tensor *tensor)
{
    const struct attn_args *args = &operands->args;
    const char *element = dtype_name(operands->spec.dtype);
    const struct peer_tensor named[NAMED] = {
        {"q", element, &args->q, &operands->q, true},
        {"k", element, &args->k, &operands->k, true},
        {"v", element, &args->v, &operands->v, true},
        {"bias", "f32", &args->bias, &operands->bias, true},
        {"mask", "u8", &args->mask, &operands->mask, true},
        {"out", element, &args->out, &operands->out, false},
        {"weights", "f32", &args->weights, &operands->weights, false},
    };
    if (index >= NAMED + operands->params)
        return false;
    if (index < NAMED) {
        *tensor = named[index];
        return true;
    }
    struct operand_param params[ATTN_MOST_PARAMS];
    const int param = index - NAMED;
    operands_params(&operands->spec, params);
    *tensor = (struct peer_tensor){
        .name = intern_format("param%d", param),
        .dtype = params[param].bias ? "f32" : element,
        .view = &operands->param[param],
        .block = &operands->param_block[param],
        .input = true,
    };
    return true;
}

static size_t rounded(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static json_t *integers(const int64_t values[4])
{
    return json_pack("[I,I,I,I]", (json_int_t)values[0], (json_int_t)values[1], (json_int_t)values[2],
                     (json_int_t)values[3]);
}

/* Where tensors lie: each its own pages; views of one buffer (aliases) one offset. Returns the bytes in all. */
static size_t lay_out(const struct operands *operands, json_t *tensors)
{
    struct peer_tensor tensor, before;
    size_t next = 0;
    for (int i = 0; peer_tensor_at(operands, i, &tensor); i++) {
        if (!tensor.view->data)
            continue;
        size_t offset = next;
        bool alias = false;
        for (int j = 0; j < i && !alias; j++) {
            peer_tensor_at(operands, j, &before);
            alias = before.view->data == tensor.view->data;
            if (alias)
                offset = (size_t)json_integer_value(json_object_get(json_object_get(tensors, before.name), "offset"));
        }
        if (!alias)
            next += rounded(tensor.block->bytes);
        json_object_set_new(tensors, tensor.name,
                            json_pack("{s:I,s:s,s:o,s:o}", "offset", (json_int_t)offset, "dtype", tensor.dtype, "shape",
                                      integers(tensor.view->size), "strides", integers(tensor.view->stride)));
    }
    return next ? next : ALIGNMENT;
}

/* An unnamed file of shared memory; where that file system is too small (64 MB is common in containers), one that
 * counts as the process's own memory. */
static int open_memory(size_t bytes)
{
    static unsigned number;
    char name[64];
    snprintf(name, sizeof name, "/attnbench-%d-%u", (int)getpid(), number++);
    int fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) {
        shm_unlink(name);
        if (posix_fallocate(fd, 0, (off_t)bytes) == 0)
            return fd;
        close(fd);
    }
    fd = memfd_create("attnbench-tensors", MFD_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, (off_t)bytes) < 0) {
        int number_of_error = errno;
        close(fd);
        return -number_of_error;
    }
    return fd < 0 ? -errno : fd;
}

int peer_memory_create(const struct operands *operands, struct peer_memory *memory, struct error *error)
{
    *memory = (struct peer_memory){.fd = -1, .tensors = json_object()};
    memory->bytes = lay_out(operands, memory->tensors);
    memory->fd = open_memory(memory->bytes);
    int rc = memory->fd < 0 ? memory->fd : 0;
    if (rc == 0) {
        memory->base = mmap(NULL, memory->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, 0);
        rc = memory->base == MAP_FAILED ? -errno : 0;
    }
    if (rc < 0) {
        memory->base = NULL;
        rc = error_system(error, -rc, "%.2f GB of shared memory for peers", (double)memory->bytes / 1e9);
        peer_memory_release(memory);
        return rc;
    }
    memory->path = intern_format("/proc/%d/fd/%d", (int)getpid(), memory->fd);
    return 0;
}

void peer_memory_release(struct peer_memory *memory)
{
    if (memory->base)
        munmap(memory->base, memory->bytes);
    if (memory->fd >= 0)
        close(memory->fd);
    json_decref(memory->tensors);
    *memory = (struct peer_memory){.fd = -1};
}

/* The tensor's place in the memory; NULL: it is absent. */
static void *place_of(const struct peer_memory *memory, const struct peer_tensor *tensor)
{
    const json_t *told = json_object_get(memory->tensors, tensor->name);
    if (!told || !tensor->block->data)
        return NULL;
    return (char *)memory->base + json_integer_value(json_object_get(told, "offset"));
}

void peer_memory_load(const struct peer_memory *memory, const struct operands *operands)
{
    struct peer_tensor tensor;
    for (int i = 0; peer_tensor_at(operands, i, &tensor); i++) {
        void *place = place_of(memory, &tensor);
        if (place && tensor.input)
            memcpy(place, tensor.block->data, tensor.block->bytes);
        else if (place) /* NaN in every dtype: a peer that writes nothing must not pass for the one before it */
            memset(place, 0xff, tensor.block->bytes);
    }
}

void peer_memory_fetch(const struct peer_memory *memory, const struct operands *operands)
{
    struct peer_tensor tensor;
    for (int i = 0; peer_tensor_at(operands, i, &tensor); i++) {
        const void *place = place_of(memory, &tensor);
        if (place && !tensor.input)
            memcpy(tensor.block->data, place, tensor.block->bytes);
    }
}

int peer_memory_map(const char *path, size_t bytes, void **base)
{
    struct stat status;
    *base = NULL;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int rc = fstat(fd, &status) < 0 ? -errno : (size_t)status.st_size < bytes ? -EMSGSIZE : 0;
    if (rc == 0) {
        void *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        rc = mapped == MAP_FAILED ? -errno : 0;
        *base = rc == 0 ? mapped : NULL;
    }
    close(fd);
    return rc;
}
