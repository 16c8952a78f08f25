/* SPDX-License-Identifier: Apache-2.0
 *
 * The referee process: judges what workers computed. It makes the inputs anew from the seed, so nothing that a kernel
 * did to its own process can reach the verdict. Requests and answers, one JSON object a line:
 *   {"op":"prepare","spec":{}|"case":"DIR","set":1,"budget_flops":1e9,"threads":2}  -> {"ok":true} | {"error":"..."}
 *   {"op":"judge",  the same fields, "segment":N,"out_bytes":N,"weights_bytes":N}
 *        ->
 * {"wrong":false,"reason":null,"verified":"full","rows_checked":N,"max_abs_err":x,"rms_err":x,"err_over_bound":x}
 *   {"op":"dump",   the same fields, "directory":"DIR","note":"..."}                 -> {"ok":true} | {"error":"..."}
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "case_folder.h"
#include "child.h"
#include "expected.h"
#include "intern.h"
#include "json_util.h"
#include "oracle.h"

/* Oracles of the problems met last: all kernels, schedules and placements of a problem share one. */
enum { KEPT = 8 };

struct ruling {
    const char *key; /* the request's problem as canonical text, interned; NULL: empty */
    uint64_t used;
    struct operands operands;  /* inputs are released once the oracle stands; shapes and strides stay */
    struct case_folder folder; /* for a case */
    bool from_folder;
    struct oracle oracle;
};

struct referee {
    struct lines in;
    struct ruling kept[KEPT];
    uint64_t clock;
};

static void ruling_release(struct ruling *ruling)
{
    if (!ruling->key)
        return;
    oracle_destroy(&ruling->oracle);
    if (ruling->from_folder)
        case_folder_release(&ruling->folder);
    else
        operands_destroy(&ruling->operands);
    *ruling = (struct ruling){0};
}

static int load_inputs(const json_t *request, int threads, struct operands *operands, struct case_folder *folder,
                       struct error *error)
{
    const char *directory = json_get_string(request, "case", NULL);
    if (directory) {
        int rc = case_folder_read(directory, folder, error);
        *operands = folder->operands;
        return rc;
    }
    struct problem_spec spec;
    int rc = spec_from_json(json_object_get(request, "spec"), &spec, error);
    if (rc == 0)
        rc = operands_create(&spec, MEMORY_PLAIN, operands, error);
    if (rc == 0)
        operands_fill(operands, (uint32_t)json_get_int(request, "set", 1), threads);
    return rc;
}

static const char *key_of(const json_t *request)
{
    json_t *key = json_pack("{s:O?,s:O?,s:O?,s:O?}", "spec", json_object_get(request, "spec"), "case",
                            json_object_get(request, "case"), "set", json_object_get(request, "set"), "budget",
                            json_object_get(request, "budget_flops"));
    char *text = json_dumps(key, JSON_COMPACT | JSON_SORT_KEYS);
    const char *kept = intern(text);
    free(text);
    json_decref(key);
    return kept;
}

static struct ruling *oldest(struct referee *referee)
{
    struct ruling *found = &referee->kept[0];
    for (int i = 1; i < KEPT; i++)
        if (referee->kept[i].used < found->used)
            found = &referee->kept[i];
    return found;
}

/* The oracle of the request's problem, made where it isn't kept. NULL and a message on failure. */
static struct ruling *rule(struct referee *referee, const json_t *request, struct error *error)
{
    const char *key = key_of(request);
    for (int i = 0; i < KEPT; i++)
        if (referee->kept[i].key == key) {
            referee->kept[i].used = ++referee->clock;
            return &referee->kept[i];
        }
    struct ruling *ruling = oldest(referee);
    ruling_release(ruling);
    int threads = (int)json_get_int(request, "threads", 1);
    ruling->from_folder = json_object_get(request, "case") != NULL;
    if (load_inputs(request, threads, &ruling->operands, &ruling->folder, error) < 0)
        return NULL;
    struct operands *operands = &ruling->operands;
    double budget = json_get_number(request, "budget_flops", INFINITY);
    int rc = oracle_create(&operands->problem, &operands->args, operands->spec.seed, budget, threads, &ruling->oracle,
                           error);
    if (rc < 0) {
        if (ruling->from_folder)
            case_folder_release(&ruling->folder);
        else
            operands_destroy(operands);
        return NULL;
    }
    if (ruling->folder.expect_out || ruling->folder.expect_weights)
        expected_replace(&ruling->folder, &ruling->oracle);
    /* Judging needs shapes and bounds only, and large inputs would crowd out the worker's. */
    if (!ruling->from_folder)
        operands_release_inputs(operands);
    ruling->key = key;
    ruling->used = ++referee->clock;
    return ruling;
}

static json_t *judge(struct referee *referee, const json_t *request, struct error *error)
{
    struct ruling *ruling = rule(referee, request, error);
    if (!ruling)
        return NULL;
    size_t out_bytes = (size_t)json_get_int(request, "out_bytes", 0);
    size_t weights_bytes = (size_t)json_get_int(request, "weights_bytes", 0);
    if (out_bytes != ruling->operands.out.bytes) {
        error_usage(error, "output of %zu bytes where %zu were expected", out_bytes, ruling->operands.out.bytes);
        return NULL;
    }
    struct attn_tensor out = ruling->operands.args.out, weights = ruling->operands.args.weights;
    const void *out_data, *weights_data;
    int rc =
        exchange_map((int)json_get_int(request, "segment", -1), out_bytes, weights_bytes, &out_data, &weights_data);
    if (rc < 0) {
        error_system(error, -rc, "cannot map the result");
        return NULL;
    }
    out.data = (void *)out_data;
    weights.data = (void *)weights_data;
    bool with_weights = weights_data && (ruling->operands.problem.flags & ATTN_FLAG_WEIGHTS);
    struct judgement judgement = {0};
    oracle_judge(&ruling->oracle, &ruling->operands.problem, &out, with_weights ? &weights : NULL, &judgement);
    exchange_unmap(out_data);
    json_t *answer =
        json_pack("{s:b,s:s,s:s,s:I}", "wrong", (int)judgement.wrong, "reason", judgement.reason, "verified",
                  ruling->oracle.full ? "full" : "sampled", "rows_checked", (json_int_t)judgement.rows_checked);
    json_object_set_new(answer, "max_abs_err", json_number_or_null(judgement.max_abs_err));
    json_object_set_new(answer, "rms_err", json_number_or_null(judgement.rms_err));
    json_object_set_new(answer, "err_over_bound", json_number_or_null(judgement.err_over_bound));
    return answer;
}

static json_t *dump(const json_t *request, struct error *error)
{
    struct operands operands = {0};
    struct case_folder folder = {0};
    int rc = load_inputs(request, (int)json_get_int(request, "threads", 1), &operands, &folder, error);
    if (rc == 0)
        rc = case_folder_write(json_get_string(request, "directory", ""), &operands,
                               json_get_string(request, "note", ""), error);
    if (json_object_get(request, "case"))
        case_folder_release(&folder);
    else
        operands_destroy(&operands);
    return rc < 0 ? NULL : json_pack("{s:b}", "ok", 1);
}

static json_t *serve(struct referee *referee, const json_t *request, struct error *error)
{
    const char *op = json_get_string(request, "op", "");
    if (strcmp(op, "prepare") == 0)
        return rule(referee, request, error) ? json_pack("{s:b}", "ok", 1) : NULL;
    if (strcmp(op, "judge") == 0)
        return judge(referee, request, error);
    if (strcmp(op, "dump") == 0)
        return dump(request, error);
    error_usage(error, "unknown request '%s'", op);
    return NULL;
}

int referee_main(int in, int out, int segment)
{
    struct referee referee = {.in = {.fd = in}};
    struct error error = {0};
    json_t *request = NULL;
    (void)segment; /* results come with segments of their own */
    while (lines_read(&referee.in, -1, &request) == 0) {
        json_t *answer = serve(&referee, request, &error);
        json_decref(request);
        if (!answer)
            answer = json_pack("{s:s}", "error", error.text);
        if (lines_write(out, answer) < 0)
            break;
    }
    for (int i = 0; i < KEPT; i++)
        ruling_release(&referee.kept[i]);
    lines_release(&referee.in);
    return 0;
}
