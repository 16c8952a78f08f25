/* SPDX-License-Identifier: Apache-2.0
 *
 * attnbench selftest-gate: the error rates of gate on a machine, from what scripts/prove-gate recorded there.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "binomial.h"
#include "commands.h"
#include "output.h"
#include "proof.h"
#include "statistics.h"
#include "values.h"

static const char help[] = "Usage: attnbench selftest-gate [--verdicts N] FILE...\n"
                           "\n"
                           "How often gate's rule is wrong on a machine, and how often it can't tell: from\n"
                           "files that scripts/prove-gate recorded there. Replayed figures draw blocks of\n"
                           "recorded processes of identical code, add a slowdown, and apply the rule; live\n"
                           "ones are verdicts as gate gave them.\n"
                           "\n"
                           "  --verdicts N  verdicts replayed for each line (100000)\n"
                           "  --help        this text\n"
                           "\n"
                           "Exit codes: 0 every bar is met, 1 one is not, 2 usage or bad file, 4 too little\n"
                           "was recorded, or on several machines.\n";

enum {
    FLAG_VERDICTS = ARGUMENTS_LONG_ONLY,
    FLAG_HELP,
    VERDICTS = 100000,
    SUITE_POINTS = 100,
    SUITES_A_VERDICT = 100,
    LEAST_RECORDED = 1000, /* of a class and load */
    LEAST_LIVE = 20,       /* of a class and effect */
    MISSING = 128          /* bytes of what says what is missing */
};

/* What a verdict may take: the median, and at most. */
#define TYPICAL_S 15.0
#define LONGEST_S 35.0

#define LIVE_TAU 0.02 /* of scripts/prove-gate's live verdicts */

/* What scripts/prove-gate plants in each class. */
static const double live_effects[] = {0, 0.02, 0.05}, sized_effects[] = {0.01, 0.02, 0.05};

/* What is asked of a line: rates of slower (at least or at most) and of inconclusive, same at most. How often identical
 * code is flagged at tau 1 % is asked of whole suites, where a flag is confirmed. */
static const struct bar {
    double tau, effect;
    double slower_least, slower_most, same_most, inconclusive_most; /* NAN: not asked */
} bars[] = {
    {0.02, 0, NAN, 0.001, NAN, 0.05},    {0.02, 0.01, NAN, NAN, NAN, NAN}, {0.02, 0.02, 0.99, NAN, 0.01, 0.05},
    {0.02, 0.05, 0.99, NAN, 0.01, 0.05}, {0.01, 0, NAN, NAN, NAN, 0.05},   {0.01, 0.01, 0.85, NAN, 0.01, NAN},
};

/* What is asked of suites: no false regression in more than 1 of 100, and that the slowed point is reported. */
static const struct suite_bar {
    double tau, effect, detected_least;
} suite_bars[] = {{0.02, 0, NAN}, {0.02, 0.02, 0.99}, {0.01, 0, NAN}, {0.01, 0.01, 0.85}};

static double share(uint64_t k, uint64_t n)
{
    return n ? (double)k / (double)n : NAN;
}

/* "12.3 % [11.9, 12.8]": exact 95 % bounds. */
static const char *share_text(uint64_t k, uint64_t n, char *out, size_t size)
{
    double low = 0, high = 1;
    binomial_interval((int64_t)k, (int64_t)n, 0.95, &low, &high);
    snprintf(out, size, "%.4g %% [%.4g, %.4g]", 100 * share(k, n), 100 * low, 100 * high);
    return out;
}

static bool meets(const struct bar *bar, const struct proof_rates *rates)
{
    const double slower = share(rates->slower, rates->verdicts), same = share(rates->same, rates->verdicts);
    const double open = share(rates->inconclusive, rates->verdicts);
    return !(slower < bar->slower_least) && !(slower > bar->slower_most) && !(same > bar->same_most) &&
           !(open > bar->inconclusive_most);
}

static double deviation(const double *values, size_t n)
{
    double mean = 0, squares = 0;
    for (size_t i = 0; i < n; i++)
        mean += values[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    return n > 1 ? sqrt(squares / (double)(n - 1)) : NAN;
}

/* asked: false prints the figures alone. */
static int print_replayed(const struct proof_series *series, bool by_cpu, uint64_t verdicts, bool asked, bool *met,
                          struct error *error)
{
    printf("| tau | true slowdown | slower | passed | inconclusive | processes | bar |\n| --- | --- | --- | --- | --- "
           "| --- | --- |\n");
    for (size_t b = 0; b < sizeof bars / sizeof *bars; b++) {
        char slower[64], same[64], open[64];
        struct proof_rates rates;
        int rc = proof_replay(series, by_cpu, bars[b].tau, bars[b].effect, verdicts, &rates, error);
        if (rc < 0)
            return rc;
        const bool bar = asked && !(isnan(bars[b].slower_least) && isnan(bars[b].inconclusive_most));
        const bool ok = !bar || meets(&bars[b], &rates);
        *met &= ok;
        printf("| %g %% | %g %% | %s | %s | %s | %.1f | %s |\n", 100 * bars[b].tau, 100 * bars[b].effect,
               share_text(rates.slower, rates.verdicts, slower, sizeof slower),
               share_text(rates.same, rates.verdicts, same, sizeof same),
               share_text(rates.inconclusive, rates.verdicts, open, sizeof open), rates.mean_processes,
               !bar ? "-"
               : ok ? "met"
                    : "**missed**");
    }
    return 0;
}

static bool same_effect(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

/* Seconds that a verdict took: median and greatest; NAN: none tells. */
static void times_of(const struct proof_counts *live, double *typical, double *longest)
{
    *typical = live->timed ? statistics_median(live->spent_s, live->timed) : NAN;
    *longest = NAN;
    for (size_t i = 0; i < live->timed; i++)
        *longest = fmax(*longest, live->spent_s[i]);
}

/* "9.1, 20.3 s" */
static const char *spent_text(const struct proof_counts *live, char *out, size_t size)
{
    double typical, longest;
    times_of(live, &typical, &longest);
    if (isnan(typical))
        return "-";
    snprintf(out, size, "%.1f, %.1f s", typical, longest);
    return out;
}

static bool in_time(const struct proof_counts *live)
{
    double typical, longest;
    times_of(live, &typical, &longest);
    return !(typical > TYPICAL_S) && !(longest > LONGEST_S);
}

/* Whether so many live verdicts can have come about where the bars hold: the exact interval of their share has a part
 * of what a bar allows. */
static bool agrees(const struct proof_counts *live)
{
    double slower_low, slower_high, open_low, open_high;
    const int64_t n = (int64_t)live->verdicts;
    binomial_interval((int64_t)live->by_verdict[SEQUENTIAL_SLOWER], n, 0.95, &slower_low, &slower_high);
    binomial_interval((int64_t)live->by_verdict[SEQUENTIAL_INCONCLUSIVE], n, 0.95, &open_low, &open_high);
    for (size_t b = 0; b < sizeof bars / sizeof *bars; b++)
        if (bars[b].tau == LIVE_TAU && same_effect(bars[b].effect, live->effect) &&
            (slower_low > bars[b].slower_most || slower_high < bars[b].slower_least ||
             open_low > bars[b].inconclusive_most))
            return false;
    return true;
}

static void print_live(const struct proof_series *series, bool *met)
{
    if (series->live_count == 0) {
        printf("\nNo live verdicts.\n");
        return;
    }
    printf("\nLive verdicts (tau %g %%):\n\n| planted | verdicts | slower | passed | inconclusive | processes | "
           "typical, longest time | bar |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n",
           100 * LIVE_TAU);
    for (size_t e = 0; e < series->live_count; e++) {
        const struct proof_counts *live = &series->live[e];
        char slower[64], same[64], open[64], spent[64];
        const uint64_t passed = live->by_verdict[SEQUENTIAL_SAME] + live->by_verdict[SEQUENTIAL_FASTER];
        const bool ok = agrees(live), soon = in_time(live);
        *met &= ok && soon;
        printf("| %g %% | %llu | %s | %s | %s | %.1f | %s | %s |\n", 100 * live->effect,
               (unsigned long long)live->verdicts,
               share_text(live->by_verdict[SEQUENTIAL_SLOWER], live->verdicts, slower, sizeof slower),
               share_text(passed, live->verdicts, same, sizeof same),
               share_text(live->by_verdict[SEQUENTIAL_INCONCLUSIVE], live->verdicts, open, sizeof open),
               share(live->processes, live->verdicts), spent_text(live, spent, sizeof spent),
               !ok    ? "**does not agree**"
               : soon ? "agrees"
                      : "agrees; **takes too long**");
    }
}

/* What was planted, as it measures: its interval must reach within a quarter of what it ought to be. */
static void print_sizes(const struct proof_series *series, bool *met)
{
    for (size_t i = 0; i < series->size_count; i++) {
        const double effect = series->sizes[i].effect, low = series->sizes[i].low - 1, high = series->sizes[i].high - 1;
        const bool ok = high >= 0.75 * effect && low <= 1.25 * effect;
        *met &= ok;
        printf("The planted %g %% measures %+.2f %% [%+.2f, %+.2f]%s.\n", 100 * effect,
               100 * (series->sizes[i].ratio - 1), 100 * low, 100 * high, ok ? "" : ": **another size**");
    }
}

/* Of a class, on whatever load. */
static uint64_t live_verdicts(const struct proof *proof, const char *workload, double effect)
{
    uint64_t live = 0;
    for (size_t s = 0; s < proof->count; s++)
        for (size_t e = 0; e < proof->series[s].live_count; e++)
            if (strcmp(proof->series[s].workload, workload) == 0 &&
                same_effect(proof->series[s].live[e].effect, effect))
                live += proof->series[s].live[e].verdicts;
    return live;
}

static bool is_sized(const struct proof *proof, const char *workload, double effect)
{
    bool sized = false;
    for (size_t s = 0; s < proof->count; s++)
        for (size_t i = 0; i < proof->series[s].size_count; i++)
            sized |= strcmp(proof->series[s].workload, workload) == 0 &&
                     same_effect(proof->series[s].sizes[i].effect, effect);
    return sized;
}

static const struct proof_series *find_series(const struct proof *proof, const char *workload, const char *load)
{
    for (size_t s = 0; s < proof->count; s++)
        if (strcmp(proof->series[s].workload, workload) == 0 && strcmp(proof->series[s].load, load) == 0)
            return &proof->series[s];
    return NULL;
}

/* Whether what was recorded bears figures: of one machine; processes of each class and load; of each class live
 * verdicts on identical code and on each slowdown, and how large those really are. Else the first that is missing. */
static bool is_enough(const struct proof *proof, char missing[MISSING])
{
    static const char *const workloads[] = {"compute", "memory"}, *const loads[] = {"quiet", "busy"};
    if (proof->mixed) {
        snprintf(missing, MISSING, "records of one machine alone");
        return false;
    }
    for (int w = 0; w < 2; w++) {
        for (int l = 0; l < 2; l++) {
            const struct proof_series *series = find_series(proof, workloads[w], loads[l]);
            snprintf(missing, MISSING, "%d log-ratios of %s, %s, without a failure", LEAST_RECORDED, workloads[w],
                     loads[l]);
            if (!series || series->count < LEAST_RECORDED || series->failed > 0)
                return false;
        }
        for (size_t e = 0; e < sizeof live_effects / sizeof *live_effects; e++) {
            snprintf(missing, MISSING, "%d live verdicts of %s on %g %%", LEAST_LIVE, workloads[w],
                     100 * live_effects[e]);
            if (live_verdicts(proof, workloads[w], live_effects[e]) < LEAST_LIVE)
                return false;
        }
        for (size_t e = 0; e < sizeof sized_effects / sizeof *sized_effects; e++) {
            snprintf(missing, MISSING, "the measured size of %s's planted %g %%", workloads[w], 100 * sized_effects[e]);
            if (!is_sized(proof, workloads[w], sized_effects[e]))
                return false;
        }
    }
    return true;
}

static int print_series(const struct proof_series *series, uint64_t verdicts, bool *met, struct error *error)
{
    printf("\n## %s, %s\n\n%zu log-ratios of identical code; standard deviation %.3f %% by CPU time, %.3f %% by wall "
           "time.\n",
           series->workload, series->load, series->count, 100 * deviation(series->cpu, series->count),
           100 * deviation(series->wall, series->count));
    print_sizes(series, met);
    if (series->failed)
        printf("%llu batches or verdicts failed.\n", (unsigned long long)series->failed);
    if (series->count < 2) {
        printf("Too few to replay.\n");
    } else {
        printf("\nReplayed, judged by CPU time (one thread), %llu verdicts a line:\n\n", (unsigned long long)verdicts);
        int rc = print_replayed(series, true, verdicts, true, met, error);
        const bool quiet = strcmp(series->load, "quiet") == 0;
        if (rc == 0) {
            printf("\nReplayed, judged by wall time%s:\n\n",
                   quiet ? "" : " (for the record: it is to be measured quiet)");
            rc = print_replayed(series, false, verdicts, quiet, met, error);
        }
        if (rc < 0)
            return rc;
    }
    print_live(series, met);
    return 0;
}

/* Whole gate runs of 100 points, half of each class, of one load. */
static int print_suites(const struct proof *proof, const char *load, uint64_t suites, bool *met, struct error *error)
{
    const struct proof_series *series[PROOF_MOST_SERIES];
    size_t count = 0;
    for (size_t s = 0; s < proof->count; s++)
        if (strcmp(proof->series[s].load, load) == 0 && proof->series[s].count >= LEAST_RECORDED)
            series[count++] = &proof->series[s];
    if (count == 0)
        return 0;
    printf(
        "\n## Suites of %d points, %s\n\nReplayed: %zu class%s in turn, judged by CPU time, flagged among all points "
        "and confirmed by fresh\nprocesses, %llu suites a line.\n\n| tau | slowed point | suites with a false "
        "regression | slowdown reported | points inconclusive | bar |\n| --- | --- | --- | --- | --- | --- |\n",
        SUITE_POINTS, load, count, count > 1 ? "es" : "", (unsigned long long)suites);
    for (size_t b = 0; b < sizeof suite_bars / sizeof *suite_bars; b++) {
        const struct suite_bar *bar = &suite_bars[b];
        struct proof_suites result;
        char slowed[16] = "none", alarmed[64], detected[64] = "-", open[64];
        int rc = proof_suites(series, count, true, bar->tau, bar->effect, suites, SUITE_POINTS, &result, error);
        if (rc < 0)
            return rc;
        if (bar->effect > 0) {
            snprintf(slowed, sizeof slowed, "%g %%", 100 * bar->effect);
            share_text(result.detected, result.suites, detected, sizeof detected);
        }
        const bool ok = share(result.alarmed, result.suites) <= 0.01 &&
                        share(result.inconclusive, result.points) <= 0.05 &&
                        !(share(result.detected, result.suites) < bar->detected_least);
        *met &= ok;
        printf("| %g %% | %s | %s | %s | %s | %s |\n", 100 * bar->tau, slowed,
               share_text(result.alarmed, result.suites, alarmed, sizeof alarmed), detected,
               share_text(result.inconclusive, result.points, open, sizeof open), ok ? "met" : "**missed**");
    }
    return 0;
}

static int parse(int argc, char **argv, uint64_t *verdicts, bool *wants_help, struct error *error)
{
    static const struct option long_flags[] = {
        {"verdicts", required_argument, NULL, FLAG_VERDICTS}, {"help", no_argument, NULL, FLAG_HELP}, {0}};
    struct arguments arguments = {argc, argv, ":h", long_flags};
    const char *value;
    int flag = arguments_next(&arguments, true, &value, error);
    for (; flag > 0; flag = arguments_next(&arguments, false, &value, error)) {
        int64_t number;
        *wants_help |= flag == FLAG_HELP || flag == 'h';
        if (flag != FLAG_VERDICTS)
            continue;
        int code = value_size(value, &number, error);
        if (code == 0 && number < 1)
            code = error_usage(error, "'0' is less than 1");
        if (code)
            return error_prefix(error, code, "--verdicts");
        *verdicts = (uint64_t)number;
    }
    if (flag == 0 && !*wants_help && optind == argc)
        return error_usage(error, "which files? (scripts/prove-gate records them)");
    return flag;
}

int command_selftest_gate(int argc, char **argv, struct error *error)
{
    uint64_t verdicts = VERDICTS;
    bool wants_help = false, met = true, enough = false;
    char missing[MISSING];
    struct proof proof = {0};
    int rc = parse(argc, argv, &verdicts, &wants_help, error);
    if (rc == 0 && wants_help)
        fputs(help, stdout);
    for (int a = optind; a < argc && rc == 0 && !wants_help; a++)
        rc = proof_read(argv[a], &proof, error);
    if (rc == 0 && !wants_help) {
        printf("# How often gate is wrong\n\n%s%s\n", proof.machine ? proof.machine : "no context tells the machine",
               proof.mixed ? " (and others: these figures mix machines)" : "");
        for (size_t s = 0; s < proof.count && rc == 0; s++)
            rc = print_series(&proof.series[s], verdicts, &met, error);
        for (size_t s = 0; s < proof.count && rc == 0; s++) {
            bool first = true;
            for (size_t t = 0; t < s; t++)
                first &= strcmp(proof.series[t].load, proof.series[s].load) != 0;
            if (first)
                rc = print_suites(&proof, proof.series[s].load, verdicts / SUITES_A_VERDICT + 1, &met, error);
        }
        enough = is_enough(&proof, missing);
        if (rc == 0 && !enough)
            printf("\nNo proof, for want of: %s.\n", missing);
    }
    proof_release(&proof);
    if (rc == 0)
        rc = output_flush(stdout, "rates", error);
    return rc < 0 || wants_help ? rc : !enough ? EXIT_INCONCLUSIVE : met ? EXIT_OK : EXIT_WRONG;
}
