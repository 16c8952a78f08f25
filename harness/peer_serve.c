/* SPDX-License-Identifier: Apache-2.0
 *
 * attnbench as a peer ("@peer"): runs kernels of libraries (kernels/peers) and of plug-ins in a process that may die,
 * by the protocol that kernels/README.md documents. Beyond it: "hello" with a kernel asks for that one alone and has
 * its library opened; "check" is a worker's check of one kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "check.h"
#include "child.h"
#include "clock.h"
#include "contestant.h"
#include "intern.h"
#include "isa.h"
#include "json_util.h"
#include "peer.h"
#include "plugin.h"
#include "registry.h"
#include "trespass.h"

enum { PROTOCOL = 1, MOST_PLUGINS = 64 };

struct server {
    struct lines in;
    int out;
    struct plugin plugins[MOST_PLUGINS];
    int plugin_count;
    struct team team;
    /* The open problem. */
    bool is_open, qualified, own;
    struct rotation rotation;
    struct contestant contestant;
    void *memory;
    size_t memory_bytes;
    json_t *tensors;
    int threads_before; /* of this process, before the kernel ran */
};

/* A kernel's reason may be anything. */
static json_t *answer_with(const char *event, const char *reason)
{
    json_t *answer = json_pack("{s:s,s:s}", "event", event, "reason", reason);
    return answer ? answer : json_pack("{s:s,s:s}", "event", event, "reason", "a reason that is no UTF-8 text");
}

static json_t *refused(const char *reason)
{
    return answer_with("refused", reason);
}

static json_t *failed(const char *reason)
{
    return answer_with("failed", reason);
}

static json_t *describe_kernel(const struct attn_kernel *kernel)
{
    json_t *rules = json_array(), *dtypes = json_array();
    for (int rule = 0; rule <= ATTN_MATMUL; rule++)
        if (kernel->rules & ATTN_BIT(rule))
            json_array_append_new(rules, json_string(rule_name((enum attn_rule)rule)));
    for (int dtype = 0; dtype <= ATTN_F16; dtype++)
        if (kernel->dtypes & ATTN_BIT(dtype))
            json_array_append_new(dtypes, json_string(dtype_name((enum attn_dtype)dtype)));
    return json_pack("{s:s,s:s,s:o,s:o,s:b,s:b,s:b,s:b,s:b,s:I}", "name", kernel->name, "summary", kernel->summary,
                     "rules", rules, "dtypes", dtypes, "own_threads", (kernel->caps & ATTN_CAP_OWN_THREADS) != 0,
                     "spans", (kernel->caps & ATTN_CAP_SPANS) != 0, "weights", (kernel->caps & ATTN_CAP_WEIGHTS) != 0,
                     "partial", (kernel->caps & ATTN_CAP_PARTIAL) != 0, "split_keys",
                     (kernel->caps & ATTN_CAP_SPLIT_KEYS) != 0, "isa", (json_int_t)kernel->isa);
}

/* What a library's adapter says of a small problem: whether the library is there, and which one. */
static json_t *hello_of_library(const struct attn_kernel *kernel)
{
    const struct attn_problem problem = {
        .struct_size = sizeof problem,
        .rule = ATTN_SCALED_DOT_PRODUCT,
        .B = 1,
        .H = 1,
        .H_kv = 1,
        .S_q = 64,
        .S_kv = 64,
        .D = 64,
        .D_v = 64,
        .left = INT64_MAX,
        .right = INT64_MAX,
        .scale = 0.125f,
    };
    void *state = NULL;
    const char *reason = kernel->refuse ? kernel->refuse(&problem) : NULL;
    if (!reason && kernel->open && kernel->open(&problem, NULL, NULL, 1, &state) < 0)
        reason = "the library could not be opened for a small problem";
    if (reason)
        return refused(reason);
    const char *source = kernel->describe ? kernel->describe(state) : kernel->summary;
    json_t *answer = json_pack("{s:s,s:i,s:s,s:[o]}", "event", "hello", "protocol", PROTOCOL, "source",
                               source ? source : kernel->summary, "kernels", describe_kernel(kernel));
    if (kernel->close)
        kernel->close(state);
    return answer;
}

static json_t *hello(const struct server *server, const json_t *request)
{
    const char *name = json_get_string(request, "kernel", NULL);
    const struct attn_kernel *asked = name ? registry_find(name, ATTN_SCALED_DOT_PRODUCT) : NULL;
    if (asked)
        return hello_of_library(asked);
    json_t *kernels = json_array();
    for (int p = 0; p < server->plugin_count; p++)
        for (int k = 0; k < server->plugins[p].count; k++)
            json_array_append_new(kernels, describe_kernel(server->plugins[p].kernels[k]));
    return json_pack("{s:s,s:i,s:s,s:o}", "event", "hello", "protocol", PROTOCOL, "source", "attnbench", "kernels",
                     kernels);
}

static void close_problem(struct server *server)
{
    if (server->is_open) {
        contestant_release(&server->contestant);
        rotation_release(&server->rotation);
    }
    if (server->memory)
        munmap(server->memory, server->memory_bytes);
    json_decref(server->tensors);
    team_release(&server->team);
    server->is_open = server->qualified = server->own = false;
    server->contestant = (struct contestant){0};
    server->memory = NULL;
    server->tensors = NULL;
}

/*
 * The team of a request. A library's own threads are counted and started by it, within the mask of this process, and
 * bound from outside when they are known: a team that is bound already would show it one CPU.
 */
static int make_team(struct server *server, const json_t *request, struct error *error)
{
    const char *name = json_get_string(request, "kernel", ""), *schedule = json_get_string(request, "schedule", "auto");
    const int threads = (int)json_get_int(request, "threads", 1);
    const json_t *list = json_object_get(request, "cpus");
    struct problem_spec spec;
    int rc = spec_from_json(json_object_get(request, "spec"), &spec, error);
    if (rc < 0)
        return rc;
    if (!registry_does(name, spec.rule))
        return error_machine(error, "%s does not do rule %s", name, rule_name(spec.rule));
    const struct attn_kernel *kernel = registry_attention(name, spec.rule);
    const bool only_own = (kernel->caps & ATTN_CAP_OWN_THREADS) && !(kernel->caps & ATTN_CAP_SPANS);
    server->own = strcmp(schedule, "own") == 0 || (only_own && strcmp(schedule, "auto") == 0);
    int32_t *cpus = NULL;
    if (!server->own && json_array_size(list) == (size_t)threads) {
        cpus = calloc((size_t)threads, sizeof *cpus);
        for (int t = 0; cpus && t < threads; t++)
            cpus[t] = (int32_t)json_integer_value(json_array_get(list, (size_t)t));
    }
    rc = team_create(threads, cpus, &server->team, error);
    free(cpus);
    return rc;
}

static int map_memory(struct server *server, const json_t *request, struct error *error)
{
    const json_t *memory = json_object_get(request, "memory");
    const char *path = json_get_string(memory, "path", "");
    server->memory_bytes = (size_t)json_get_int(memory, "bytes", 0);
    server->tensors = json_deep_copy(json_object_get(memory, "tensors"));
    int rc = peer_memory_map(path, server->memory_bytes, &server->memory);
    return rc < 0 ? error_system(error, -rc, "shared memory %s", path) : 0;
}

/* Copies the inputs (or the outputs the other way) between the shared memory and the operands. */
static int exchange_tensors(const struct server *server, const struct operands *operands, bool inputs,
                            struct error *error)
{
    struct peer_tensor tensor;
    for (int i = 0; peer_tensor_at(operands, i, &tensor); i++) {
        const json_t *told = json_object_get(server->tensors, tensor.name);
        if (!tensor.block->data || tensor.input != inputs)
            continue;
        const json_int_t offset = json_get_int(told, "offset", -1);
        if (offset < 0 || (size_t)offset + tensor.block->bytes > server->memory_bytes)
            return error_usage(error, "the memory has no room for %s", tensor.name);
        char *place = (char *)server->memory + offset;
        if (inputs)
            memcpy(tensor.block->data, place, tensor.block->bytes);
        else
            memcpy(place, tensor.block->data, tensor.block->bytes);
    }
    return 0;
}

static const char *source_of(const struct server *server)
{
    const struct member *member = &server->contestant.member;
    const struct registry_origin *origin = registry_origin(server->contestant.kernel);
    const char *told = NULL;
    if (origin->kind == REGISTRY_PEER)
        told = member_describe(member);
    return told ? told : origin->source;
}

static json_t *opened(const struct server *server)
{
    const struct member *member = &server->contestant.member;
    json_t *answer = json_pack("{s:s,s:s,s:s,s:I,s:i}", "event", "opened", "schedule", member->schedule->name, "source",
                               source_of(server), "workspace_bytes", (json_int_t)member_workspace_bytes(member),
                               "threads", server->team.threads);
    if (registry_origin(server->contestant.kernel)->kind == REGISTRY_PLUGIN)
        json_object_set_new(answer, "isa", json_integer((json_int_t)member->kernel->isa));
    if (member->matmul)
        json_object_set_new(answer, "matmul_kernel", json_string(member->matmul->name));
    return answer;
}

static json_t *open_problem(struct server *server, const json_t *request)
{
    struct error error;
    struct problem_spec spec;
    struct contestant *contestant = &server->contestant;
    close_problem(server);
    int rc = make_team(server, request, &error);
    if (rc == 0)
        rc = map_memory(server, request, &error);
    if (rc == 0)
        rc = spec_from_json(json_object_get(request, "spec"), &spec, &error);
    const enum cache_state cache = (enum cache_state)cache_from_name(json_get_string(request, "cache", "warm"));
    if (rc == 0)
        rc = rotation_create(&spec, cache, json_get_number(request, "llc_bytes", 0), server->team.threads,
                             &server->rotation, &error);
    if (rc == 0) {
        server->is_open = true;
        server->threads_before = trespass_threads();
        *contestant = (struct contestant){
            .kernel = intern(json_get_string(request, "kernel", "")),
            .schedule = intern(json_get_string(request, "schedule", "auto")),
            .threads = server->team.threads,
            .thread_busy_ns = calloc((size_t)server->team.threads, sizeof(double)),
        };
        if (!contestant->thread_busy_ns)
            rc = error_system(&error, ENOMEM, "a team of %d threads", server->team.threads);
    }
    if (rc == 0)
        rc = member_open(contestant->kernel, contestant->schedule, &server->rotation.operands, &server->team,
                         MEMORY_HUGE, &contestant->member, &error);
    if (rc == 0)
        return opened(server);
    close_problem(server);
    return rc == -ENOTSUP ? refused(error.text) : failed(error.text);
}

static json_t *load(struct server *server)
{
    struct error error;
    if (exchange_tensors(server, &server->rotation.operands, true, &error) < 0)
        return failed(error.text);
    rotation_spread(&server->rotation, server->team.threads);
    return json_pack("{s:s}", "event", "loaded");
}

static bool is_plugin(const char *kernel)
{
    return registry_origin(kernel)->kind == REGISTRY_PLUGIN;
}

/* What a kernel did to its surroundings that contestant.h does not look at. */
static const char *misdeed(const struct server *server)
{
    const struct contestant *contestant = &server->contestant;
    if (contestant->failure || !is_plugin(contestant->kernel))
        return contestant->failure;
    if (contestant->changed_float_mode)
        return TEAM_FLOAT_MODE_LEFT;
    return trespass_found(server->own, server->threads_before);
}

/* Calls for longer than a turn's own warm-up takes: to find the threads that work. */
static bool warm_longer(struct server *server, double warm_ns)
{
    const double began = clock_ns();
    while (clock_ns() - began < warm_ns) {
        int rc = member_call(&server->contestant.member, &server->rotation.args[0]);
        if (rc < 0) {
            server->contestant.failure = intern_format("the kernel returned error %d (%s)", -rc, strerror(-rc));
            return false;
        }
    }
    return true;
}

static void take_turn(struct server *server, const json_t *request, const void **out)
{
    struct contestant *contestant = &server->contestant;
    const double warm_ns = json_get_number(request, "warm_ns", 0);
    if (!server->qualified) {
        contestant_qualify(contestant, &server->rotation);
        if (team_flushes_subnormals(&server->team))
            contestant->changed_float_mode = true;
        server->qualified = true;
        if (!contestant->failure && series_add(&contestant->samples, contestant->call_ns) < 0)
            contestant->failure = "out of memory for samples";
        contestant->calls_per_sample = 1;
        return;
    }
    contestant_forget(contestant);
    contestant->calls_wanted = json_get_int(request, "calls_per_sample", 0);
    if (warm_ns <= 2e6 || warm_longer(server, warm_ns))
        contestant_turn(contestant, &server->rotation, &server->team, (int)json_get_int(request, "samples", 1),
                        json_is_true(json_object_get(request, "last")), out);
}

static json_t *tell_turn(const struct server *server)
{
    const struct contestant *c = &server->contestant;
    const struct operands *o = &server->rotation.operands;
    const struct memory_block *all[] = {&o->q, &o->k, &o->v, &o->out, &c->member.scratch, &server->rotation.copies};
    const char *pages = memory_page_mode(all, sizeof all / sizeof *all);
    json_t *samples = json_array();
    for (size_t s = 0; s < c->samples.count; s++)
        json_array_append_new(samples, json_real(c->samples.values[s]));
    json_t *answer =
        json_pack("{s:s,s:o,s:I,s:f,s:s,s:s?,s:I,s:b}", "event", "turn", "samples_ns", samples, "calls_per_sample",
                  (json_int_t)c->calls_per_sample, "call_ns", c->call_ns, "source", source_of(server), "page_mode",
                  pages, "retaken", (json_int_t)c->retaken, "changed_float_mode", (int)c->changed_float_mode);
    if (!server->own || server->team.threads == 1) { /* of a library's threads nothing is known */
        const int used = strcmp(c->member.schedule->name, "serial") == 0 ? 1 : server->team.threads;
        json_t *busy = json_array(), *phases = json_object();
        for (int t = 0; t < used; t++)
            json_array_append_new(busy, json_real(c->thread_busy_ns[t]));
        json_object_set_new(answer, "busy_ns", busy);
        json_object_set_new(answer, "cpu_ns", json_real(c->noise.cpu_ns));
        for (int p = 0; p < ATTN_PHASES; p++)
            if (c->phase_ns[p] > 0)
                json_object_set_new(phases, attn_phase_names[p], json_real(c->phase_ns[p]));
        json_object_set_new(answer, "phases_ns", phases);
    }
    return answer;
}

static json_t *turn(struct server *server, const json_t *request)
{
    struct operands *operands = &server->rotation.operands;
    const void *out = NULL;
    struct error error;
    take_turn(server, request, &out);
    const char *wrong = misdeed(server);
    if (wrong)
        return failed(wrong);
    if (out) {
        if (out != operands->out.data)
            memcpy(operands->out.data, out, operands->out.bytes);
        if (exchange_tensors(server, operands, false, &error) < 0)
            return failed(error.text);
    }
    return tell_turn(server);
}

/* A worker's check of one kernel, on this process's own operands; the output goes into the shared memory. */
static json_t *check_kernel(struct server *server, const json_t *request)
{
    struct error error;
    struct check check = {0};
    const char *failure = NULL;
    close_problem(server);
    int rc = make_team(server, request, &error);
    if (rc == 0)
        rc = map_memory(server, request, &error);
    const int before = trespass_threads();
    if (rc == 0) {
        rc = check_prepare(request, server->team.threads, &check, &error);
        const char *name = json_get_string(request, "kernel", "");
        const char *reason = rc ? NULL : registry_refusal(name, &check.operands.problem, isa_available());
        if (reason)
            rc = error_machine(&error, "%s", reason);
        if (rc == 0)
            failure = check_once(&check, name, json_get_string(request, "schedule", "auto"), &server->team);
        if (rc == 0 && !failure && is_plugin(name))
            failure = trespass_found(server->own, before);
        if (rc == 0 && !failure)
            rc = exchange_tensors(server, &check.operands, false, &error);
        check_release(&check);
    }
    close_problem(server);
    if (failure)
        return failed(failure);
    if (rc < 0)
        return rc == -ENOTSUP ? refused(error.text) : failed(error.text);
    return json_pack("{s:s}", "event", "checked");
}

static json_t *serve(struct server *server, const json_t *request)
{
    const char *op = json_get_string(request, "op", "");
    if (strcmp(op, "hello") == 0)
        return hello(server, request);
    if (strcmp(op, "open") == 0)
        return open_problem(server, request);
    if (strcmp(op, "check") == 0)
        return check_kernel(server, request);
    if (!server->is_open)
        return failed("no problem is open");
    if (strcmp(op, "load") == 0)
        return load(server);
    if (strcmp(op, "turn") == 0)
        return turn(server, request);
    if (strcmp(op, "close") != 0)
        return failed(intern_format("unknown request '%s'", op));
    close_problem(server);
    return json_pack("{s:s}", "event", "closed");
}

/* Opens the plug-ins of the command line and adds their kernels. */
static int add_plugins(struct server *server, int argc, char **argv, struct error *error)
{
    for (int a = 0; a + 1 < argc; a += 2) {
        if (strcmp(argv[a], "--plugin") != 0 || server->plugin_count == MOST_PLUGINS)
            return error_usage(error, "@peer takes --plugin FILE, at most %d times", MOST_PLUGINS);
        struct plugin *plugin = &server->plugins[server->plugin_count];
        int rc = plugin_open(argv[a + 1], plugin, error);
        if (rc < 0)
            return rc;
        server->plugin_count++;
        const struct registry_origin origin = {REGISTRY_PLUGIN, intern_format("plugin:%s", argv[a + 1]), NULL};
        for (int k = 0; k < plugin->count && rc == 0; k++) {
            rc = registry_add(plugin->kernels[k], &origin, error);
            rc = rc == -EEXIST ? 0 : rc; /* it is told of all the same; whoever asks decides what the clash means */
        }
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Out of the way of kernels that close or write what they take for theirs, where so many files may be open. */
static int keep_descriptor(int fd)
{
    enum { HIGH = 500 };
    const int kept = fcntl(fd, F_DUPFD_CLOEXEC, HIGH);
    return kept < 0 ? fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) : kept;
}

int peer_main(int argc, char **argv)
{
    struct server server = {0};
    struct error error = {0};
    json_t *request = NULL;
    /* Libraries may print, or read: the protocol keeps descriptors of its own. */
    server.in.fd = keep_descriptor(STDIN_FILENO);
    server.out = keep_descriptor(STDOUT_FILENO);
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (server.in.fd < 0 || server.out < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 ||
        dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return 1;
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* what a kernel starts and disowns is seen here */
    registry_run_foreign();
    int rc = add_plugins(&server, argc, argv, &error);
    while (lines_read(&server.in, -1, &request) == 0) {
        json_t *answer = rc < 0 ? failed(error.text) : serve(&server, request);
        if (rc < 0)
            json_object_set_new(answer, "exit_code", json_integer(error.exit_code));
        json_decref(request);
        if (lines_write(server.out, answer) < 0)
            break;
    }
    /* A kernel's library may not survive its own farewell; nobody waits for it. */
    _exit(0);
}
