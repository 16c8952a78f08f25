/* SPDX-License-Identifier: Apache-2.0
 *
 * What identifies a point: the digest of what was asked for, and the command line that asks for it again; see spec.h.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fnv.h"
#include "intern.h"
#include "spec.h"
#include "spec_sizes.h"

struct digest {
    uint64_t state;
};

static void digest_text(struct digest *digest, const char *field, const char *value) /* "field=value;" */
{
    const char *const parts[] = {field, "=", value, ";"};
    for (int i = 0; i < 4; i++)
        digest->state = fnv(digest->state, parts[i], strlen(parts[i]));
}

static void digest_integer(struct digest *digest, const char *field, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    digest_text(digest, field, text);
}

static void digest_number(struct digest *digest, const char *field, double value)
{
    char text[32];
    digest_text(digest, field, number_text(value, text));
}

/* Only what the rule has, so that ids of other rules stay when one gains a size. */
static void digest_sizes(struct digest *digest, const struct problem_spec *s)
{
    for (int i = 0; i < spec_sizes_count; i++)
        if (spec_has_size(s, &spec_sizes[i]))
            digest_integer(digest, spec_sizes[i].field, spec_size_value(s, &spec_sizes[i]));
    for (int i = 0; i < spec_switches_count; i++)
        if (spec_has_switch(s, &spec_switches[i]))
            digest_integer(digest, spec_switches[i].field, spec_switch_value(s, &spec_switches[i]));
    if (s->rule == ATTN_MATMUL) {
        digest_text(digest, "broadcast", broadcast_name(s->broadcast));
        digest_text(digest, "semantics", semantics_name(s->semantics));
    }
}

/* Names in alphabetical order; the order is part of what makes ids stable. */
static void digest_spec(struct digest *digest, const struct problem_spec *s)
{
    digest_integer(digest, "B", s->B);
    digest_integer(digest, "D", s->D);
    digest_integer(digest, "D_v", s->D_v);
    digest_integer(digest, "H", s->H);
    digest_integer(digest, "H_kv", s->H_kv);
    digest_integer(digest, "S_kv", s->S_kv);
    digest_integer(digest, "S_q", s->S_q);
    digest_text(digest, "alias", alias_name(s->alias));
    digest_integer(digest, "bias", s->bias);
    digest_text(digest, "causal", causal_name(s->causal));
    digest_text(digest, "dtype", dtype_name(s->dtype));
    digest_text(digest, "fill", fill_name(s->fill));
    digest_text(digest, "kv_lengths", s->kv_lengths);
    digest_text(digest, "layout", layout_name(s->layout));
    digest_number(digest, "mask", s->mask_share >= 0 ? s->mask_share : -1);
    digest_text(digest, "rule", rule_name(s->rule));
    digest_number(digest, "scale", spec_scale(s));
    digest_integer(digest, "seed", (int64_t)s->seed);
    digest_number(digest, "softcap", s->softcap);
    digest_integer(digest, "weights", s->weights);
    digest_integer(digest, "window", s->window);
    if (s->window) {
        digest_integer(digest, "window_left", s->window_left);
        digest_integer(digest, "window_right", s->window_right == WINDOW_NOT_GIVEN ? 0 : s->window_right);
    }
    digest_sizes(digest, s);
}

uint64_t spec_digest(const struct problem_spec *spec)
{
    struct digest digest = {FNV_START};
    digest_spec(&digest, spec);
    return digest.state;
}

uint64_t point_digest(const struct point *point)
{
    struct digest digest = {FNV_START};
    digest_spec(&digest, &point->spec);
    digest_text(&digest, "cache", cache_name(point->cache));
    digest_text(&digest, "kernel", point->kernel);
    if (point->mem)
        digest_text(&digest, "mem", point->mem);
    digest_text(&digest, "placement", point->placement);
    digest_text(&digest, "schedule_requested", point->schedule_requested);
    digest_text(&digest, "source", point->source);
    digest_integer(&digest, "threads", point->threads);
    return digest.state;
}

const char *point_id(const struct point *point)
{
    return intern_format("%016" PRIx64, point_digest(point));
}

/* Writes text so that a shell reads it back as one word. */
static void write_word(FILE *file, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+.,:@/=";
    if (*text && strspn(text, plain) == strlen(text)) {
        fputs(text, file);
        return;
    }
    fputc('\'', file);
    for (; *text; text++)
        fputs(*text == '\'' ? "'\\''" : (const char[2]){*text, 0}, file);
    fputc('\'', file);
}

static void write_flag(FILE *file, const char *flag, const char *value)
{
    fprintf(file, " %s ", flag);
    write_word(file, value);
}

static void write_size(FILE *file, const char *flag, int64_t value)
{
    fprintf(file, " %s%s %" PRId64, flag[1] ? "--" : "-", flag, value);
}

/* What scaled_dot_product has, as far as the rule has it too. */
static void write_usual_sizes(FILE *file, const struct problem_spec *s)
{
    const bool projected = s->rule == ATTN_ADDITIVE || s->rule == ATTN_CONCAT, heads = !s->single;
    write_size(file, "B", s->B);
    if (heads && (s->rule != ATTN_MATMUL || s->H != 1))
        write_size(file, "H", s->H);
    if (s->rule == ATTN_MATMUL)
        return;
    if (s->H_kv != s->H)
        write_size(file, "kv-heads", s->H_kv);
    if (s->S_q == s->S_kv) {
        write_size(file, "S", s->S_q);
    } else {
        write_size(file, "q-len", s->S_q);
        write_size(file, "kv-len", s->S_kv);
    }
    if (!projected && heads)
        write_size(file, "D", s->D);
    if (projected || (heads && s->D_v != s->D))
        write_size(file, "value-dim", s->D_v);
}

static void write_sizes(FILE *file, const struct problem_spec *s)
{
    write_usual_sizes(file, s);
    for (int i = 0; i < spec_sizes_count; i++)
        if (spec_has_size(s, &spec_sizes[i]))
            write_size(file, spec_sizes[i].flag, spec_size_value(s, &spec_sizes[i]));
    for (int i = 0; i < spec_switches_count; i++)
        if (spec_switch_value(s, &spec_switches[i]))
            fprintf(file, " --%s", spec_switches[i].flag);
    if (s->broadcast != BROADCAST_NONE)
        write_flag(file, "--broadcast", broadcast_name(s->broadcast));
    if (s->semantics != SEMANTICS_MATMUL)
        write_flag(file, "--semantics", semantics_name(s->semantics));
}

static void write_problem(FILE *file, const struct problem_spec *s)
{
    const struct problem_spec usual = spec_default();
    char text[32];
    if (s->rule != usual.rule)
        write_flag(file, "--rule", rule_name(s->rule));
    write_sizes(file, s);
    if (s->dtype != usual.dtype)
        write_flag(file, "--dtype", dtype_name(s->dtype));
    if (s->layout != usual.layout)
        write_flag(file, "--layout", layout_name(s->layout));
    if (s->causal != usual.causal)
        write_flag(file, "--causal", causal_name(s->causal));
    if (strcmp(s->kv_lengths, usual.kv_lengths) != 0)
        write_flag(file, "--kv-lengths", s->kv_lengths);
    if (s->mask_share >= 0)
        fprintf(file, " --mask random:%s", number_text(s->mask_share, text));
    if (s->bias)
        fputs(" --bias", file);
    if (s->window)
        fprintf(file, " --window=%" PRId64 ":%" PRId64, s->window_left,
                s->window_right == WINDOW_NOT_GIVEN ? 0 : s->window_right);
    if (s->softcap > 0)
        write_flag(file, "--softcap", number_text(s->softcap, text));
    struct problem_spec unscaled = *s;
    unscaled.scale = usual.scale;
    if (spec_scale(s) != spec_scale(&unscaled))
        fprintf(file, " --scale=%s", number_text(s->scale, text));
    if (s->weights)
        fputs(" --weights", file);
    if (s->alias != usual.alias)
        write_flag(file, "--alias", alias_name(s->alias));
    if (s->fill != usual.fill)
        write_flag(file, "--fill", fill_name(s->fill));
    if (s->seed != usual.seed)
        fprintf(file, " --seed %" PRIu64, s->seed);
}

char *point_repro(const struct point *point)
{
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    if (!file)
        return NULL;
    fputs("attnbench run", file);
    write_problem(file, &point->spec);
    if (point->cache != CACHE_WARM)
        write_flag(file, "--cache", cache_name(point->cache));
    if (strncmp(point->source, "plugin:", 7) == 0)
        write_flag(file, "--plugin", point->source + 7);
    write_flag(file, "--kernel", point->kernel);
    if (strcmp(point->schedule_requested, "auto") != 0)
        write_flag(file, "--schedule", point->schedule_requested);
    fprintf(file, " --threads %d", point->threads);
    if (strcmp(point->placement, "compact") != 0)
        write_flag(file, "--place", point->placement);
    if (point->mem)
        write_flag(file, "--mem", point->mem);
    fclose(file);
    return text;
}
