/* SPDX-License-Identifier: Apache-2.0
 *
 * A problem in the words of the peer protocol; see peer.h.
 */
#include "peer.h"

static json_t *limit(int64_t keys)
{
    return keys == INT64_MAX ? json_null() : json_integer((json_int_t)keys);
}

static json_t *lengths(const int64_t *values, int64_t count)
{
    if (!values)
        return json_null();
    json_t *array = json_array();
    for (int64_t b = 0; b < count; b++)
        json_array_append_new(array, json_integer((json_int_t)values[b]));
    return array;
}

json_t *peer_problem(const struct operands *operands)
{
    const struct attn_problem *p = &operands->problem;
    const struct problem_spec *spec = &operands->spec;
    json_t *problem =
        json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:s,s:f,s:f}", "rule", rule_name(spec->rule), "B", (json_int_t)p->B,
                  "H", (json_int_t)p->H, "H_kv", (json_int_t)p->H_kv, "S_q", (json_int_t)p->S_q, "S_kv",
                  (json_int_t)p->S_kv, "D", (json_int_t)p->D, "D_v", (json_int_t)p->D_v, "dtype",
                  dtype_name(spec->dtype), "scale", (double)p->scale, "softcap", (double)p->softcap);
    json_object_set_new(problem, "causal", json_string(causal_name(spec->causal)));
    json_object_set_new(problem, "kv_len", lengths(p->kv_len, p->B));
    json_object_set_new(problem, "diag", lengths(p->diag, p->B));
    json_object_set_new(problem, "left", limit(p->left));
    json_object_set_new(problem, "right", limit(p->right));
    json_object_set_new(problem, "mask", json_boolean(operands->args.mask.data != NULL));
    json_object_set_new(problem, "bias", json_boolean(operands->args.bias.data != NULL));
    json_object_set_new(problem, "weights", json_boolean((p->flags & ATTN_FLAG_WEIGHTS) != 0));
    json_object_set_new(problem, "alias", json_string(alias_name(spec->alias)));
    return problem;
}

json_t *peer_open_request(const char *kernel, const char *schedule, const struct team *team,
                          const struct operands *operands, const struct peer_memory *memory)
{
    json_t *cpus = team->cpus ? json_array() : json_null();
    for (int t = 0; team->cpus && t < team->threads; t++)
        json_array_append_new(cpus, json_integer(team->cpus[t]));
    json_t *shared = json_pack("{s:s,s:I,s:O}", "path", memory->path, "bytes", (json_int_t)memory->bytes, "tensors",
                               memory->tensors);
    return json_pack("{s:s,s:s,s:s,s:i,s:o,s:i,s:s,s:o,s:o,s:o}", "op", "open", "kernel", kernel, "schedule", schedule,
                     "threads", team->threads, "cpus", cpus, "copies", 1, "cache", "warm", "problem",
                     peer_problem(operands), "spec", spec_to_json(&operands->spec), "memory", shared);
}
