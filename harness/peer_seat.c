/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns of a peer; see peer_seat.h.
 */
#include "peer_seat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "intern.h"
#include "json_util.h"
#include "statistics.h"

static const double sample_aim_ns = 5e5, turn_warm_ns = 2e6;
/* Unclocked calls for so long show which threads work: their clocks may tick in 10 ms. */
static const double threads_show_ns = 6e7;

void peer_table_release(struct peer_table *table)
{
    if (table->memory.tensors)
        peer_memory_release(&table->memory);
}

/* Asks, and files a refusal or failure with the contestant. The answer (borrowed until the next one), or NULL. */
static const json_t *ask(struct contestant *contestant, json_t *request)
{
    struct peer_seat *seat = contestant->seat;
    struct error why;
    json_t *answer = peer_ask(&seat->peer, request, seat->table->timeout_s, PEER_POINT_TIMEOUT, &why);
    if (!answer) {
        contestant->failure = intern(why.text);
        return NULL;
    }
    const char *event = json_get_string(answer, "event", "");
    const char *reason = intern(json_get_string(answer, "reason", "it does not say why"));
    if (strcmp(event, "refused") == 0)
        seat->refused = contestant->failure = reason;
    else if (strcmp(event, "failed") == 0)
        contestant->failure = reason;
    else
        json_object_update(seat->told, answer);
    json_decref(answer);
    return contestant->failure ? NULL : seat->told;
}

static json_t *open_request(const struct contestant *contestant, const struct peer_table *table)
{
    json_t *request = peer_open_request(contestant->kernel, contestant->schedule, table->team,
                                        &table->rotation->operands, &table->memory);
    json_object_set_new(request, "copies", json_integer((json_int_t)table->rotation->count));
    json_object_set_new(request, "cache", json_string(cache_name(table->cache)));
    json_object_set_new(request, "llc_bytes", json_real(table->llc_bytes));
    json_object_set_new(request, "seed", json_integer((json_int_t)table->seed));
    return request;
}

void peer_seat_take(struct contestant *contestant, const json_t *command, struct peer_table *table)
{
    struct error why;
    struct peer_seat *seat = calloc(1, sizeof *seat);
    if (!seat) {
        contestant->failure = "out of memory for a peer";
        return;
    }
    contestant->seat = seat;
    seat->table = table;
    seat->told = json_object();
    seat->command = json_deep_copy(command);
    int rc = 0;
    if (!table->memory.tensors) {
        rc = peer_memory_create(&table->rotation->operands, &table->memory, &why);
        if (rc == 0) /* a first call on zeros would hide what it writes to its inputs */
            peer_memory_load(&table->memory, &table->rotation->operands);
    }
    if (rc < 0 || peer_pool_take(table->pool, command, table->team, table->memory_limit, &seat->peer, &why) < 0) {
        contestant->failure = intern(why.text);
        return;
    }
    const double began = clock_ns();
    const json_t *told = ask(contestant, open_request(contestant, table));
    if (told)
        seat->schedule = intern(json_get_string(told, "schedule", contestant->schedule));
    contestant->spent_ns += clock_ns() - began;
}

void peer_seat_load(struct contestant *contestant)
{
    ask(contestant, json_pack("{s:s}", "op", "load"));
}

static json_t *turn_request(double warm_ns, int samples, int64_t calls, bool last)
{
    return json_pack("{s:s,s:f,s:i,s:I,s:f,s:b}", "op", "turn", "warm_ns", warm_ns, "samples", samples,
                     "calls_per_sample", (json_int_t)calls, "aim_ns", sample_aim_ns, "last", (int)last);
}

/* Where the working threads are; a thread that the harness can't find again is looked for anew once. */
static void inspect(struct contestant *contestant)
{
    struct peer *peer = &contestant->seat->peer;
    struct error why;
    const int64_t migrations = peer->migrations;
    if (peer_threads_inspect(peer, &why) < 0)
        contestant->failure = intern(why.text);
    contestant->migrations += peer->migrations - migrations;
}

void peer_seat_qualify(struct contestant *contestant)
{
    struct peer_seat *seat = contestant->seat;
    struct error why;
    const double began = clock_ns();
    peer_seat_load(contestant);
    const json_t *told = contestant->failure ? NULL : ask(contestant, turn_request(0, 1, 1, false));
    if (told) {
        contestant->call_ns = json_get_number(told, "call_ns", 0);
        contestant->calls_per_sample = 1;
    }
    if (told)
        peer_threads_mark(&seat->peer);
    if (told && seat->peer.threads > 1 && !ask(contestant, turn_request(threads_show_ns, 1, 1, false)))
        told = NULL;
    if (told && peer_threads_bind(&seat->peer, &why) < 0)
        contestant->failure = intern(why.text);
    contestant->spent_ns += clock_ns() - began;
}

/* Its samples into the contestant's series; false: the answer makes no sense. */
static bool take_samples(struct contestant *contestant, const json_t *told, int samples)
{
    const json_t *values = json_object_get(told, "samples_ns");
    const int64_t calls = json_get_int(told, "calls_per_sample", 0);
    const size_t first = contestant->samples.count;
    if (json_array_size(values) != (size_t)samples || calls < 1) {
        contestant->failure = intern_format("told %zu samples of %lld calls where %d were asked for",
                                            json_array_size(values), (long long)calls, samples);
        return false;
    }
    if (first == 0)
        contestant->calls_per_sample = calls;
    for (int s = 0; s < samples; s++) {
        const double value = json_number_value(json_array_get(values, (size_t)s));
        if (!(value > 0)) {
            contestant->failure = "told a sample that is no time";
            return false;
        }
        if (series_add(&contestant->samples, value) < 0) {
            contestant->failure = "out of memory for samples";
            return false;
        }
        contestant->clocked_ns += value * (double)calls;
        contestant->clocked_calls += calls;
    }
    contestant->call_ns = json_get_number(told, "call_ns", contestant->samples.values[first]);
    contestant->turn_median_ns =
        statistics_median(contestant->samples.values + first, contestant->samples.count - first);
    return true;
}

/* What the peer knows of its threads and the machine knows of the peer. */
static void take_noise(struct contestant *contestant, const json_t *told, const struct noise_reading *before)
{
    struct peer_seat *seat = contestant->seat;
    struct noise_reading after;
    struct peer_usage usage = peer_usage(&seat->peer);
    noise_read(&after);
    contestant->noise.steal_ns += after.steal_ns - before->steal_ns;
    contestant->noise.involuntary_switches += usage.involuntary_switches - seat->before.involuntary_switches;
    if (after.throttled_ns < 0 || contestant->noise.throttled_ns < 0)
        contestant->noise.throttled_ns = -1;
    else
        contestant->noise.throttled_ns += after.throttled_ns - before->throttled_ns;
    const json_t *busy = json_object_get(told, "busy_ns");
    const double cpu_ns = json_get_number(told, "cpu_ns", 0);
    for (size_t t = 0; t < json_array_size(busy) && t < (size_t)seat->peer.threads; t++) {
        contestant->thread_busy_ns[t] += json_number_value(json_array_get(busy, t));
        if (cpu_ns > 0) /* the gauge needs both */
            contestant->busy_sum_ns += json_number_value(json_array_get(busy, t));
    }
    if (json_array_size(busy))
        contestant->noise.cpu_ns += cpu_ns;
    contestant->retaken += json_get_int(told, "retaken", 0);
    contestant->changed_float_mode |= json_is_true(json_object_get(told, "changed_float_mode"));
    const json_t *phases = json_object_get(told, "phases_ns");
    for (int p = 0; p < ATTN_PHASES; p++)
        contestant->phase_ns[p] += json_get_number(phases, attn_phase_names[p], 0);
}

void peer_seat_turn(struct contestant *contestant, int samples, bool last)
{
    struct peer_seat *seat = contestant->seat;
    struct noise_reading before;
    const double began = clock_ns();
    const int64_t calls = contestant->samples.count ? contestant->calls_per_sample : 0;
    noise_read(&before);
    seat->before = peer_usage(&seat->peer);
    if (last)
        peer_memory_load(&seat->table->memory, &seat->table->rotation->operands);
    json_object_del(seat->told, "busy_ns");
    json_object_del(seat->told, "cpu_ns");
    const json_t *told = ask(contestant, turn_request(turn_warm_ns, samples, calls, last));
    if (told && take_samples(contestant, told, samples)) {
        take_noise(contestant, told, &before);
        inspect(contestant);
        if (last)
            peer_memory_fetch(&seat->table->memory, &seat->table->rotation->operands);
    }
    contestant->spent_ns += clock_ns() - began;
}

void peer_seat_leave(struct contestant *contestant)
{
    if (!contestant->failure && ask(contestant, json_pack("{s:s}", "op", "close")) == NULL &&
        !contestant->seat->refused)
        contestant->failure = intern_format("when it was to close the problem, %s", contestant->failure);
}

int64_t peer_seat_isa(const struct contestant *contestant)
{
    return json_get_int(contestant->seat->told, "isa", -1);
}

void peer_seat_tell(const struct contestant *contestant, json_t *event)
{
    static const char *const fields[] = {"source", "workspace_bytes", "page_mode", "matmul_kernel"};
    const struct peer_seat *seat = contestant->seat;
    if (seat->refused)
        json_object_set_new(event, "refused", json_string(seat->refused));
    if (contestant->failure)
        return;
    for (size_t f = 0; f < sizeof fields / sizeof *fields; f++) {
        json_t *value = json_object_get(seat->told, fields[f]);
        json_object_set(event, fields[f], value ? value : json_null());
    }
    json_t *cpus = json_array();
    for (int t = 0; t < seat->peer.threads; t++)
        if (seat->peer.actual[t] >= 0)
            json_array_append_new(cpus, json_integer(seat->peer.actual[t]));
    json_object_set_new(event, "cpus", cpus);
    json_object_set_new(event, "schedule", json_string(seat->schedule));
    const double peak = peer_peak_rss(&seat->peer);
    json_object_set_new(event, "peak_rss_bytes", peak < 0 ? json_null() : json_integer((json_int_t)peak));
}

void peer_seat_release(struct contestant *contestant)
{
    struct peer_seat *seat = contestant->seat;
    if (!seat)
        return;
    /* One that failed may be in any state; one that refused has nothing open. */
    if (!contestant->failure || seat->refused)
        peer_pool_give(seat->table->pool, seat->command, &seat->peer);
    peer_end(&seat->peer);
    json_decref(seat->command);
    json_decref(seat->told);
    free(seat);
    contestant->seat = NULL;
}
