/* SPDX-License-Identifier: Apache-2.0
 *
 * The peer libraries that can be opened here, each in a process of its own, against the float64 oracle: sizes around
 * block edges, grouped heads, causal lines and windows with S_q != S_kv, ragged lengths with NaN behind them, masks
 * with empty rows, bias of -inf, softcap, NaN and infinities where only some rows may look, returned weights, products
 * of matrices. Outputs hold NaN beforehand: a product that is not to be added must not read them. A library that cannot
 * be opened is a skip with its reason.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/wait.h>

#include "attention_example.h"
#include "harness/oracle.h"
#include "harness/registry.h"
#include "kernels/elements_portable.h"
#include "kernels/schedule/schedule.h"

enum { MOST_THREADS = 2, SEEDS = 60, MOST_PEERS = 32, BEHIND = 1 << 18 };

/* What a child tells its parent. */
enum verdict { PASSED = 0, FAILED = 1, ABSENT = 2 };

static int report; /* end of a pipe to the parent */

__attribute__((noreturn, format(printf, 2, 3))) static void end(enum verdict verdict, const char *format, ...)
{
    char text[6000];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const size_t bytes = (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
    if (write(report, text, bytes) < 0)
        _exit(FAILED);
    _exit((int)verdict);
}

static const char *running = "nothing";

static void crashed(int number)
{
    static const char words[] = "crashed in ";
    if (write(report, words, sizeof words - 1) < 0 || write(report, running, strlen(running)) < 0)
        _exit(FAILED);
    signal(number, SIG_DFL);
    raise(number);
}

static bool does(const struct attn_kernel *kernel, const struct attn_problem *problem)
{
    return (kernel->rules & ATTN_BIT(problem->rule)) && (kernel->dtypes & ATTN_BIT(problem->dtype)) &&
           !((problem->flags & ATTN_FLAG_WEIGHTS) && !(kernel->caps & ATTN_CAP_WEIGHTS)) &&
           !(kernel->refuse && kernel->refuse(problem));
}

/* Runs a problem as a schedule does; scratch holds NaN. */
static void run(const struct attn_kernel *kernel, const struct attn_schedule *schedule, int threads,
                const struct attn_problem *given, const struct attn_args *args, const char *text)
{
    struct attn_problem problem = *given;
    struct attn_plan plan = {.phases = 1, .q_grain = 1, .k_grain = 1, .head_grain = 1};
    void *state = NULL, *scratch[MOST_THREADS];
    struct guarded blocks[MOST_THREADS];
    problem.flags |= schedule->kernel_flags;
    running = text;
    int rc = kernel->open ? kernel->open(&problem, NULL, NULL, threads, &state) : 0;
    if (rc == 0 && kernel->plan)
        rc = kernel->plan(&problem, threads, state, &plan);
    if (rc != 0)
        end(FAILED, "%s, %s on %d: open or plan returned %d", text, schedule->name, threads, rc);
    for (int t = 0; t < threads; t++) {
        const size_t bytes = (plan.thread_bytes + 63) / 64 * 64;
        blocks[t] = guarded_allocate(bytes);
        scratch[t] = blocks[t].data;
        memset(scratch[t], 0xff, bytes);
    }
    const struct attn_job job = {
        .kernel = kernel,
        .problem = given,
        .args = args,
        .plan = &plan,
        .state = state,
        .scratch = scratch,
        .threads = threads,
    };
    rc = schedule->run(&job);
    if (rc != 0)
        end(FAILED, "%s, %s on %d: run returned %d", text, schedule->name, threads, rc);
    for (int t = 0; t < threads; t++)
        guarded_release(&blocks[t]);
    if (kernel->describe && (!kernel->describe(state) || !*kernel->describe(state)))
        end(FAILED, "%s: describe says nothing", text);
    if (kernel->close)
        kernel->close(state);
}

static void judge(const struct oracle *oracle, const struct attn_problem *problem, const struct attn_args *args,
                  const char *text)
{
    struct judgement judgement;
    const bool weights = problem->flags & ATTN_FLAG_WEIGHTS;
    oracle_judge(oracle, problem, &args->out, weights ? &args->weights : NULL, &judgement);
    if (judgement.wrong)
        end(FAILED, "%s: %s", text, judgement.reason);
}

static void fill_with_nan(const struct attn_problem *problem, const struct attn_args *args)
{
    const size_t element = element_size(problem->dtype);
    for (int64_t b = 0; b < problem->B; b++)
        for (int64_t h = 0; h < problem->H; h++)
            for (int64_t i = 0; i < problem->S_q; i++) {
                memset(row_in(&args->out, problem->dtype, b, h, i), 0xff, (size_t)problem->D_v * element);
                if (args->weights.data)
                    memset(row_in(&args->weights, ATTN_F32, b, h, i), 0xff, (size_t)problem->S_kv * sizeof(float));
            }
}

/* Serial, spread over two threads, and on the library's own, as far as the kernel can. */
static int run_schedules(const struct attn_kernel *kernel, const struct attn_problem *problem,
                         const struct attn_args *args, uint64_t seed, const char *text)
{
    struct oracle oracle;
    struct error error;
    int ran = 0;
    if (!does(kernel, problem))
        return 0;
    if (oracle_create(problem, args, seed, INFINITY, 1, &oracle, &error) != 0)
        end(FAILED, "%s: %s", text, error.text);
    const struct attn_schedule *const schedules[] = {&attn_schedule_serial, &attn_schedule_bhq, &attn_schedule_own};
    for (int s = 0; s < 3; s++) {
        char who[512];
        if (schedules[s]->refuse && schedules[s]->refuse(kernel, problem, s ? MOST_THREADS : 1))
            continue;
        if (schedules[s] != &attn_schedule_own && (kernel->caps & ATTN_CAP_OWN_THREADS) &&
            !(kernel->caps & ATTN_CAP_SPANS))
            continue;
        snprintf(who, sizeof who, "%s, %s", schedules[s]->name, text);
        fill_with_nan(problem, args);
        run(kernel, schedules[s], s ? MOST_THREADS : 1, problem, args, who);
        judge(&oracle, problem, args, who);
        ran++;
    }
    oracle_destroy(&oracle);
    return ran;
}

/* BLIS 0.9 reads rows and columns behind the last ones of its operands (kernels/peers/blis.c). */
static bool over_reads(const struct attn_kernel *kernel)
{
    return strcmp(kernel->name, "blis") == 0;
}

/* BLIS's product of a matrix with a vector leaves out zeros of the vector, and with them the NaN that they meet; oneDNN
 * hides keys by adding -inf to their scores, which a NaN survives. */
static bool mistakes_nan(const struct attn_kernel *kernel)
{
    return strcmp(kernel->name, "blis") == 0 || strcmp(kernel->name, "onednn") == 0;
}

/* The same tensor in a dtype, what lies between its rows too; behind it, so many readable bytes. */
static void move(struct attn_tensor *tensor, struct guarded *block, uint32_t dtype, size_t behind)
{
    if (!tensor->data)
        return;
    int64_t elements = 1;
    for (int n = 0; n < 4; n++)
        elements += (tensor->size[n] - 1) * tensor->stride[n];
    *block = guarded_allocate((size_t)elements * element_size(dtype) + behind);
    for (int64_t n = 0; n < elements; n++)
        write_element(dtype, block->data, n, ((const float *)tensor->data)[n]);
    tensor->data = block->data;
}

static int try_moved(const struct attn_kernel *kernel, struct example *x, uint32_t dtype, uint64_t seed)
{
    struct attn_problem problem = x->problem;
    struct attn_args args = x->args;
    struct guarded blocks[4] = {{0}};
    const bool aliased = args.v.data == args.k.data;
    char text[300];
    const size_t behind = over_reads(kernel) ? BEHIND : 0;
    problem.dtype = dtype;
    if (!does(kernel, &problem))
        return 0;
    move(&args.q, &blocks[0], dtype, behind);
    move(&args.k, &blocks[1], dtype, behind);
    if (aliased)
        args.v.data = args.k.data;
    else
        move(&args.v, &blocks[2], dtype, behind);
    move(&args.out, &blocks[3], dtype, behind);
    snprintf(text, sizeof text, "dtype %u, %s", dtype, x->text);
    const int ran = run_schedules(kernel, &problem, &args, seed, text);
    for (int n = 0; n < 4; n++)
        guarded_release(&blocks[n]);
    return ran;
}

static int try_example(const struct attn_kernel *kernel, enum topic topic, uint64_t seed)
{
    struct example x;
    struct guarded weights = {0};
    draw_example(&x, topic, seed);
    x.problem.flags &= ~ATTN_FLAG_PARTIAL;
    if ((kernel->caps & ATTN_CAP_WEIGHTS) && one_in(3)) {
        const struct attn_problem *p = &x.problem;
        const int64_t elements = lay_out(&x.args.weights, p->B, p->H, p->S_q, p->S_kv, 0, 0);
        allocate_tensor(&x.args.weights, &weights, elements, 1.0f);
        x.problem.flags |= ATTN_FLAG_WEIGHTS;
    }
    int ran = over_reads(kernel) ? try_moved(kernel, &x, ATTN_F32, seed)
                                 : run_schedules(kernel, &x.problem, &x.args, seed, x.text);
    for (uint32_t dtype = ATTN_BF16; dtype <= ATTN_F16 && seed % 4 == 0; dtype++)
        ran += try_moved(kernel, &x, dtype, seed);
    guarded_release(&weights);
    release_example(&x);
    return ran;
}

static void attention(const struct attn_kernel *kernel)
{
    int ran = 0;
    for (int topic = 0; topic < TOPICS; topic++)
        for (uint64_t seed = 0; seed < SEEDS && !(topic == TOPIC_POISONED && mistakes_nan(kernel)); seed++)
            ran += try_example(kernel, (enum topic)topic, seed * TOPICS + (uint64_t)topic);
    /* Plain problems are what every peer is here for. */
    if (ran < SEEDS)
        end(FAILED, "no more than %d problems ran: the rest was refused", ran);
}

/* out = a b (+ bias) against the oracle. */
static int try_product(const struct attn_kernel *kernel, uint64_t seed)
{
    static const int64_t sizes[] = {1, 2, 3, 7, 15, 16, 17, 31, 33, 64, 65, 97, 129, 200};
    random_state = seed;
    struct attn_problem p = {.struct_size = sizeof p, .rule = ATTN_MATMUL, .B = 1 + below(2), .H = 1 + below(2)};
    struct attn_args args = {0};
    struct guarded blocks[4] = {{0}}, longer[3] = {{0}};
    p.H_kv = p.H;
    p.S_q = pick(sizes, sizeof sizes / sizeof *sizes);
    p.S_kv = p.D_v = pick(sizes, sizeof sizes / sizeof *sizes);
    p.D = pick(sizes, sizeof sizes / sizeof *sizes);
    p.flags = one_in(2) ? ATTN_FLAG_TRANSPOSED : 0;
    p.left = p.right = INT64_MAX;
    p.scale = 1;
    const bool transposed = p.flags & ATTN_FLAG_TRANSPOSED;
    const int64_t rows = transposed ? p.S_kv : p.D, columns = transposed ? p.D : p.S_kv;
    const int order = (int)below(3);
    const int64_t gap = one_in(2) ? 0 : 1 + below(5);
    if (!does(kernel, &p))
        return 0;
    allocate_tensor(&args.q, &blocks[0], lay_out(&args.q, p.B, p.H, p.S_q, p.D, order, gap), 1.7f);
    allocate_tensor(&args.k, &blocks[1], lay_out(&args.k, p.B, p.H, rows, columns, order, gap), 1.7f);
    allocate_tensor(&args.out, &blocks[2], lay_out(&args.out, p.B, p.H, p.S_q, p.S_kv, order, gap), 1.0f);
    if (one_in(2)) {
        allocate_tensor(&args.bias, &blocks[3], lay_out(&args.bias, 1, 1, 1, p.S_kv, 0, 0), 1.7f);
        args.bias.stride[0] = args.bias.stride[1] = args.bias.stride[2] = 0;
    }
    if (over_reads(kernel)) {
        move(&args.q, &longer[0], ATTN_F32, BEHIND);
        move(&args.k, &longer[1], ATTN_F32, BEHIND);
        move(&args.out, &longer[2], ATTN_F32, BEHIND);
    }
    char text[256];
    snprintf(text, sizeof text, "product, seed %d: M %d N %d K %d transposed %d bias %d", (int)seed, (int)p.S_q,
             (int)p.S_kv, (int)p.D, transposed, args.bias.data != NULL);
    const int ran = run_schedules(kernel, &p, &args, seed, text);
    for (int n = 0; n < 4; n++)
        guarded_release(&blocks[n]);
    for (int n = 0; n < 3; n++)
        guarded_release(&longer[n]);
    return ran;
}

/* With old output: twice the same product in one output is twice the product, exactly. */
static void accumulate(const struct attn_kernel *kernel)
{
    enum { M = 17, N = 33, K = 4 };
    float a[M * K], b[K * N], once[M * N], twice[M * N];
    random_state = 7;
    for (int n = 0; n < M * K; n++)
        a[n] = (float)(below(9) - 4);
    for (int n = 0; n < K * N; n++)
        b[n] = (float)(below(9) - 4);
    for (int n = 0; n < M * N; n++)
        once[n] = NAN;
    struct attn_problem p = {
        .struct_size = sizeof p, .rule = ATTN_MATMUL, .B = 1, .H = 1, .H_kv = 1, .S_q = M, .S_kv = N, .D = K, .D_v = N};
    struct attn_args args = {
        .q = {a, {1, 1, M, K}, {M * K, M * K, K, 1}},
        .k = {b, {1, 1, K, N}, {K * N, K * N, N, 1}},
        .out = {once, {1, 1, M, N}, {M * N, M * N, N, 1}},
    };
    if (!does(kernel, &p))
        return;
    run(kernel, &attn_schedule_serial, 1, &p, &args, "product into NaN");
    memcpy(twice, once, sizeof once);
    args.out.data = twice;
    p.flags = ATTN_FLAG_ACCUMULATE;
    if (!does(kernel, &p))
        return;
    run(kernel, &attn_schedule_serial, 1, &p, &args, "product added");
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            float sum = 0; /* of small integers: exact in any order */
            for (int k = 0; k < K; k++)
                sum += a[m * K + k] * b[k * N + n];
            if (!(once[m * N + n] == sum && twice[m * N + n] == 2 * sum))
                end(FAILED, "product [%d][%d] is %g, added %g, not %g and %g", m, n, (double)once[m * N + n],
                    (double)twice[m * N + n], (double)sum, (double)(2 * sum));
        }
}

static void products(const struct attn_kernel *kernel)
{
    int ran = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        ran += try_product(kernel, seed);
    if (ran < SEEDS)
        end(FAILED, "no more than %d products ran: the rest was refused", ran);
    accumulate(kernel);
}

/* No queries, keys or sequences: nothing to do, and zeros where there are queries. */
static void empty(const struct attn_kernel *kernel)
{
    static const int64_t sizes[][3] = {{0, 3, 3}, {1, 0, 3}, {1, 3, 0}};
    for (int n = 0; n < 3; n++) {
        float q[3 * 8] = {0}, k[3 * 8] = {0}, v[3 * 8] = {0}, out[3 * 8];
        struct attn_problem p = {.struct_size = sizeof p,
                                 .B = sizes[n][0],
                                 .H = 1,
                                 .H_kv = 1,
                                 .S_q = sizes[n][1],
                                 .S_kv = sizes[n][2],
                                 .D = 8,
                                 .D_v = 8,
                                 .left = INT64_MAX,
                                 .right = INT64_MAX,
                                 .scale = 1};
        const struct attn_args args = {
            .q = {q, {p.B, 1, p.S_q, 8}, {24, 24, 8, 1}},
            .k = {k, {p.B, 1, p.S_kv, 8}, {24, 24, 8, 1}},
            .v = {v, {p.B, 1, p.S_kv, 8}, {24, 24, 8, 1}},
            .out = {out, {p.B, 1, p.S_q, 8}, {24, 24, 8, 1}},
        };
        memset(out, 0xff, sizeof out);
        if (!does(kernel, &p))
            continue;
        const bool spans = !(kernel->caps & ATTN_CAP_OWN_THREADS) || (kernel->caps & ATTN_CAP_SPANS);
        run(kernel, spans ? &attn_schedule_serial : &attn_schedule_own, 1, &p, &args, "an empty problem");
        for (int64_t e = 0; e < 24; e++)
            if (p.B * p.S_q > 0 ? out[e] != 0 : !isnan(out[e]))
                end(FAILED, "an empty problem's output holds %g", (double)out[e]);
    }
}

static void in_child(const struct attn_kernel *kernel)
{
    struct attn_problem problem = {.struct_size = sizeof problem,
                                   .B = 1,
                                   .H = 1,
                                   .H_kv = 1,
                                   .S_q = 16,
                                   .S_kv = 16,
                                   .D = 16,
                                   .D_v = 16,
                                   .left = INT64_MAX,
                                   .right = INT64_MAX,
                                   .scale = 0.25f};
    /* cmocka's handlers would go on with its tests here. */
    for (int number = 1; number < 32; number++)
        signal(number, SIG_DFL);
    signal(SIGSEGV, crashed);
    signal(SIGABRT, crashed);
    const char *reason = kernel->refuse ? kernel->refuse(&problem) : NULL;
    if (reason)
        end(ABSENT, "%s: %s", kernel->name, reason);
    attention(kernel);
    if (kernel->rules & ATTN_BIT(ATTN_MATMUL))
        products(kernel);
    empty(kernel);
    end(PASSED, "%s", "");
}

static void test_peer(void **state)
{
    const struct attn_kernel *kernel = *state;
    int pipes[2], status;
    char text[6000];
    size_t length = 0;
    assert_int_equal(pipe(pipes), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(pipes[0]);
        report = pipes[1];
        in_child(kernel);
    }
    close(pipes[1]);
    for (ssize_t got = 1; got > 0 && length<sizeof text - 1; length += got> 0 ? (size_t)got : 0)
        got = read(pipes[0], text + length, sizeof text - 1 - length);
    text[length] = '\0';
    close(pipes[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == ABSENT) {
        print_message("# %s\n", text);
        skip();
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != PASSED)
        fail_msg("%s: %s (status %#x)", kernel->name, text, (unsigned)status);
}

/* Every adapter can say why not, and what ran. */
static void test_entries(void **state)
{
    (void)state;
    for (const struct attn_kernel *const *peer = attn_peers; *peer; peer++) {
        const struct attn_kernel *kernel = *peer;
        assert_int_equal(kernel->abi, ATTN_ABI);
        assert_non_null(kernel->refuse);
        assert_non_null(kernel->describe);
    }
}

int main(int count_of_arguments, char **arguments)
{
    /* Threads that wait for work by spinning keep other processes from it; read when the runtime is loaded. */
    (void)count_of_arguments;
    if (setenv("OMP_WAIT_POLICY", "passive", 0) == 0 && !getenv("CHECK_PEERS_STARTED")) {
        setenv("CHECK_PEERS_STARTED", "1", 1);
        execv("/proc/self/exe", arguments);
    }
    struct CMUnitTest tests[MOST_PEERS + 1] = {cmocka_unit_test(test_entries)};
    size_t count = 1;
    for (const struct attn_kernel *const *peer = attn_peers; *peer && count <= MOST_PEERS; peer++)
        tests[count++] = (struct CMUnitTest){(*peer)->name, test_peer, NULL, NULL, (void *)*peer};
    return _cmocka_run_group_tests("peers", tests, count, NULL, NULL);
}
