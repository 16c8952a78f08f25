/* SPDX-License-Identifier: Apache-2.0
 *
 * The worker's "check": each kernel runs a problem once, between guard pages, and shows its output to the referee.
 * Nothing is timed.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "case_folder.h"
#include "intern.h"
#include "isa.h"
#include "json_util.h"
#include "member.h"
#include "worker.h"

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

static const char *run_once(struct worker *worker, const char *kernel, const char *schedule, struct operands *operands,
                            enum memory_kind kind)
{
    struct member member;
    struct error error;
    const char *failure = NULL;
    if (member_open(kernel, schedule, operands, &worker->team, kind, &member, &error) < 0)
        return intern(error.text);
    uint64_t before = operands_input_digest(operands);
    operands_poison(operands, worker->team.threads);
    int rc = team_inspect(&worker->team, &error);
    if (rc < 0)
        failure = intern(error.text);
    /* Twice on one workspace: what a kernel keeps from the call before must not matter. */
    for (int call = 0; call < 2 && !failure; call++) {
        rc = member_call(&member, &operands->args);
        if (rc < 0)
            failure = intern_format("the kernel returned error %d (%s)", -rc, strerror(-rc));
        if (call == 0)
            operands_poison(operands, worker->team.threads);
    }
    if (!failure && operands_input_digest(operands) != before)
        failure = "wrote to its inputs";
    const struct memory_block *outputs[] = {&operands->out, &operands->weights};
    for (int b = 0; b < 2 && !failure; b++)
        if (kind != MEMORY_GUARDED && outputs[b]->data && memory_canary_broken(outputs[b]))
            failure = intern_format("wrote out of bounds (%s)", memory_canary_broken(outputs[b]));
    if (!failure && kind != MEMORY_GUARDED)
        failure = member_canary_broken(&member);
    if (!failure && team_flushes_subnormals(&worker->team))
        failure = "left FTZ or DAZ switched on";
    member_close(&member);
    return failure;
}

static int prepare(const json_t *request, enum memory_kind kind, int threads, struct operands *operands,
                   struct case_folder *folder, struct memory_block *far, struct error *error)
{
    const char *directory = json_get_string(request, "case", NULL);
    if (directory) {
        int rc = case_folder_read(directory, folder, error);
        *operands = folder->operands; /* still owned by folder */
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
        rc = operands_create(&spec, kind, operands, error);
    if (rc == 0)
        operands_fill(operands, (uint32_t)json_get_int(request, "set", 1), threads);
    if (rc == 0 && json_is_true(json_object_get(request, "far"))) {
        rc = move_far(operands, far);
        if (rc < 0)
            error_system(error, -rc, "a sparse mapping for a far check");
    }
    return rc;
}

int worker_check(struct worker *worker, const json_t *request, struct error *error)
{
    const json_t *members = json_object_get(request, "members");
    /* qemu-user reads the masked lanes of masked loads: guard pages would blame the kernels for it. */
    enum memory_kind kind = isa_emulated() ? MEMORY_PLAIN : MEMORY_GUARDED;
    struct operands operands = {0};
    struct case_folder folder = {0};
    struct memory_block far[2] = {0};
    bool from_folder = json_object_get(request, "case") != NULL;
    int rc = prepare(request, kind, worker->team.threads, &operands, &folder, far, error);
    if (from_folder)
        kind = MEMORY_PLAIN;
    for (size_t i = 0; i < json_array_size(members) && rc == 0; i++) {
        const json_t *member = json_array_get(members, i);
        worker_turn(worker, (int)i);
        const char *failure = run_once(worker, json_get_string(member, "kernel", ""),
                                       json_get_string(member, "schedule", "auto"), &operands, kind);
        worker_turn(worker, -1);
        if (!failure)
            rc = worker_show_output(worker, (int)i, &operands, operands.out.data);
        if (rc == 0)
            rc = worker_tell(worker, json_pack("{s:s,s:i,s:o}", "event", "result", "member", (int)i, "failure",
                                               failure ? json_string(failure) : json_null()));
        if (rc < 0)
            error_system(error, -rc, "checking");
    }
    for (int t = 0; t < 2; t++)
        if (far[t].base)
            munmap(far[t].base, far[t].mapped);
    if (from_folder)
        case_folder_release(&folder);
    else
        operands_destroy(&operands);
    return rc;
}
