/* SPDX-License-Identifier: Apache-2.0
 *
 * A problem between guard pages, and a kernel's run on it; see check.h. Nothing is timed.
 */
#include "check.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "intern.h"
#include "isa.h"
#include "json_util.h"
#include "member.h"

/* Distance of two batch entries of k and v in a `far` check: beyond what 32-bit element offsets reach. */
#define FAR_STRIDE ((INT64_C(1) << 31) + 4096)

/*
 * Views k and v with a batch stride of over 2^31 elements, in a sparse mapping of which only the rows are ever touched.
 * Kernels that compute offsets in 32 bits go astray. 0 or -errno.
 */
static int move_far(struct operands *operands, struct memory_block *mapping)
{
    struct attn_tensor *tensors[] = {&operands->args.k, &operands->args.v};
    const struct memory_block *blocks[] = {&operands->k, &operands->v};
    size_t element = dtype_bytes(operands->spec.dtype);
    for (int t = 0; t < 2; t++) {
        int64_t batches = tensors[t]->size[0];
        size_t one = batches ? blocks[t]->bytes / (size_t)batches : 0;
        size_t bytes = (size_t)(batches - 1) * FAR_STRIDE * element + one;
        char *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (base == MAP_FAILED)
            return -errno;
        mapping[t] = (struct memory_block){.base = base, .mapped = bytes};
        for (int64_t b = 0; b < batches; b++)
            memcpy(base + (size_t)b * FAR_STRIDE * element, (const char *)blocks[t]->data + (size_t)b * one, one);
        tensors[t]->data = base;
        tensors[t]->stride[0] = FAR_STRIDE;
    }
    return 0;
}

const char *check_once(struct check *check, const char *kernel, const char *schedule, struct team *team)
{
    struct operands *operands = &check->operands;
    const enum memory_kind kind = check->kind;
    struct member member;
    struct error error;
    const char *failure = NULL;
    if (member_open(kernel, schedule, operands, team, kind, &member, &error) < 0)
        return intern(error.text);
    uint64_t before = operands_input_digest(operands);
    operands_poison(operands, team->threads);
    int rc = team_inspect(team, &error);
    if (rc < 0)
        failure = intern(error.text);
    /* Twice on one workspace: what a kernel keeps from the call before must not matter. */
    for (int call = 0; call < 2 && !failure; call++) {
        rc = member_call(&member, &operands->args);
        if (rc < 0)
            failure = intern_format("the kernel returned error %d (%s)", -rc, strerror(-rc));
        if (call == 0)
            operands_poison(operands, team->threads);
    }
    if (!failure && operands_input_digest(operands) != before)
        failure = "wrote to its inputs";
    const struct memory_block *outputs[] = {&operands->out, &operands->weights};
    for (int b = 0; b < 2 && !failure; b++)
        if (kind != MEMORY_GUARDED && outputs[b]->data && memory_canary_broken(outputs[b]))
            failure = intern_format("wrote out of bounds (%s)", memory_canary_broken(outputs[b]));
    if (!failure && kind != MEMORY_GUARDED)
        failure = member_canary_broken(&member);
    if (!failure && team_flushes_subnormals(team))
        failure = TEAM_FLOAT_MODE_LEFT;
    if (!failure && team_inspect(team, &error) < 0)
        failure = intern(error.text);
    member_close(&member);
    return failure;
}

int check_prepare(const json_t *request, int threads, struct check *check, struct error *error)
{
    struct operands *operands = &check->operands;
    const char *directory = json_get_string(request, "case", NULL);
    /* qemu-user reads the masked lanes of masked loads: guard pages would blame the kernels for it. */
    *check = (struct check){.kind = isa_emulated() || directory ? MEMORY_PLAIN : MEMORY_GUARDED,
                            .from_folder = directory != NULL};
    if (directory) {
        int rc = case_folder_read(directory, &check->folder, error);
        *operands = check->folder.operands;
        /* Kernels that don't return weights are judged by their output alone: the request's spec says which. */
        if (rc == 0 && !json_is_true(json_object_get(json_object_get(request, "spec"), "weights"))) {
            operands->problem.flags &= ~ATTN_FLAG_WEIGHTS;
            operands->args.weights.data = NULL;
            operands->weights = (struct memory_block){0};
        }
        return rc;
    }
    struct problem_spec spec;
    int rc = spec_from_json(json_object_get(request, "spec"), &spec, error);
    if (rc == 0)
        rc = operands_create(&spec, check->kind, operands, error);
    if (rc == 0)
        operands_fill(operands, (uint32_t)json_get_int(request, "set", 1), threads);
    if (rc == 0 && json_is_true(json_object_get(request, "far"))) {
        rc = move_far(operands, check->far);
        if (rc < 0)
            error_system(error, -rc, "a sparse mapping for a far check");
    }
    return rc;
}

void check_release(struct check *check)
{
    for (int t = 0; t < 2; t++)
        if (check->far[t].base)
            munmap(check->far[t].base, check->far[t].mapped);
    if (check->from_folder)
        case_folder_release(&check->folder);
    else
        operands_destroy(&check->operands);
}
