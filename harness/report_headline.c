/* SPDX-License-Identifier: Apache-2.0
 *
 * The report's headline: machine, runs, the three sentences that matter and the table behind them, warnings. A verdict
 * counts problems, each at its fastest point over kernels, schedules, threads and placements.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json_util.h"
#include "report_html.h"
#include "report_parts.h"
#include "statistics.h"
#include "text.h"

/* Verdicts of one source over the problems of one rule and class. */
struct verdict {
    size_t rule;
    enum report_class class;
    size_t problems, noisy;
    size_t winner, wins;          /* the kernel that is fastest most often */
    double least_lead, most_lead; /* over the next kernel; NaN: it had no rival */
    size_t level;                 /* wins where its 95 % interval meets that of the next kernel */
    double roof, roof_least, roof_most;
};

struct verdicts {
    const struct report *report;
    size_t source;
    const struct report_contest *contests;
    size_t contest_count;
    struct verdict *items;
    size_t count;
};

static const struct report_record *first_of(const struct verdicts *verdicts, size_t contest)
{
    return &verdicts->report->records[verdicts->contests[contest].first];
}

static bool belongs(const struct verdicts *verdicts, size_t contest, const struct verdict *verdict)
{
    const struct report_record *first = first_of(verdicts, contest);
    return verdicts->contests[contest].source == verdicts->source && first->rule == verdict->rule &&
           first->class == verdict->class;
}

static void count_winner(const struct verdicts *verdicts, struct verdict *verdict)
{
    size_t *wins = calloc(verdicts->report->kernel_count + 1, sizeof *wins);
    if (!wins)
        abort();
    for (size_t i = 0; i < verdicts->contest_count; i++) {
        if (!belongs(verdicts, i, verdict))
            continue;
        size_t kernel = first_of(verdicts, i)->kernel;
        if (++wins[kernel] > verdict->wins) {
            verdict->wins = wins[kernel];
            verdict->winner = kernel;
        }
    }
    free(wins);
}

/* A median below another one says nothing where their intervals meet. */
static bool intervals_meet(const struct report_record *first, const struct report_record *second)
{
    return json_get_number(first->json, "ci95_high_ns", NAN) >= json_get_number(second->json, "ci95_low_ns", NAN);
}

/* Leads of the winner where it won. */
static void measure_lead(const struct verdicts *verdicts, struct verdict *verdict)
{
    verdict->least_lead = verdict->most_lead = NAN;
    for (size_t i = 0; i < verdicts->contest_count; i++) {
        const struct report_contest *contest = &verdicts->contests[i];
        if (!belongs(verdicts, i, verdict) || first_of(verdicts, i)->kernel != verdict->winner ||
            contest->second == REPORT_NONE)
            continue;
        double lead = report_median(&verdicts->report->records[contest->second]) /
                      report_median(&verdicts->report->records[contest->first]);
        verdict->least_lead = fmin(verdict->least_lead, lead);
        verdict->most_lead = fmax(verdict->most_lead, lead);
        verdict->level +=
            intervals_meet(&verdicts->report->records[contest->first], &verdicts->report->records[contest->second]);
    }
}

static void measure_roof(const struct verdicts *verdicts, struct verdict *verdict)
{
    double *fractions = calloc(verdicts->contest_count + 1, sizeof *fractions);
    size_t count = 0;
    if (!fractions)
        abort();
    verdict->roof_least = verdict->roof_most = NAN;
    for (size_t i = 0; i < verdicts->contest_count; i++) {
        if (!belongs(verdicts, i, verdict))
            continue;
        const struct report_record *first = first_of(verdicts, i);
        double fraction = json_get_number(first->json, "roof_fraction", NAN);
        verdict->problems++;
        verdict->noisy += first->noisy;
        if (isnan(fraction))
            continue;
        fractions[count++] = fraction;
        verdict->roof_least = fmin(verdict->roof_least, fraction);
        verdict->roof_most = fmax(verdict->roof_most, fraction);
    }
    verdict->roof = statistics_median(fractions, count);
    free(fractions);
}

static void judge(struct verdicts *verdicts)
{
    const struct report *report = verdicts->report;
    verdicts->items = calloc(REPORT_CLASSES * report->rule_count + 1, sizeof *verdicts->items);
    if (!verdicts->items)
        abort();
    for (size_t rule = 0; rule < report->rule_count; rule++) {
        for (int class = 0; class < REPORT_CLASSES; class ++) {
            struct verdict verdict = {.rule = rule, .class = (enum report_class) class};
            count_winner(verdicts, &verdict);
            measure_lead(verdicts, &verdict);
            measure_roof(verdicts, &verdict);
            if (verdict.problems > 0)
                verdicts->items[verdicts->count++] = verdict;
        }
    }
}

static void put_class(const struct verdicts *verdicts, const struct verdict *verdict, FILE *page)
{
    const char *rule = verdicts->report->rules[verdict->rule];
    if (verdicts->report->rule_count > 1 || strcmp(rule, "scaled_dot_product") != 0)
        html_format(page, "%s ", rule);
    fputs(report_class_name(verdict->class), page);
}

/* Two figures, or one where both are written alike. */
static void put_range(const char *least, const char *most, const char *unit, FILE *page)
{
    fprintf(page, "%s%s", least, unit);
    if (strcmp(least, most) != 0)
        fprintf(page, " to %s%s", most, unit);
}

static void put_lead(const struct verdict *verdict, FILE *page)
{
    char least[TEXT_FIGURE], most[TEXT_FIGURE];
    text_number(verdict->least_lead, 3, 7, least);
    text_number(verdict->most_lead, 3, 7, most);
    put_range(least, most, "\u00a0×", page);
}

static void put_roof_range(const struct verdict *verdict, FILE *page)
{
    char least[TEXT_FIGURE], most[TEXT_FIGURE];
    text_percent(verdict->roof_least, least);
    text_percent(verdict->roof_most, most);
    put_range(least, most, "", page);
}

/* What separates the items of a list in a sentence. */
static const char *separator(size_t index, size_t count)
{
    return index == 0 ? "" : index + 1 == count ? " and " : ", ";
}

/* More classes than a reader takes in from a sentence are left to the table below it. */
enum { SPELT_OUT = 4 };

/* How many problems each kernel is fastest on, the most first. */
static void put_wins(const struct verdicts *verdicts, FILE *page)
{
    size_t problems = 0, kernels = 0, *wins = calloc(verdicts->report->kernel_count + 1, sizeof *wins);
    if (!wins)
        abort();
    for (size_t i = 0; i < verdicts->contest_count; i++) {
        if (verdicts->contests[i].source != verdicts->source)
            continue;
        problems++;
        kernels += wins[first_of(verdicts, i)->kernel]++ == 0;
    }
    for (size_t told = 0; told < kernels; told++) {
        size_t most = 0;
        for (size_t k = 1; k < verdicts->report->kernel_count; k++)
            most = wins[k] > wins[most] ? k : most;
        fputs(separator(told, kernels), page);
        html_format(page, "%s", verdicts->report->kernels[most]);
        fprintf(page, " on %zu", wins[most]);
        if (told == 0) {
            fputs(" of ", page);
            report_count(problems, "problem", page);
        }
        wins[most] = 0;
    }
    free(wins);
}

static void put_fastest(const struct verdicts *verdicts, FILE *page)
{
    fputs("<li><strong>Fastest kernel:</strong> ", page);
    if (verdicts->count > SPELT_OUT) {
        put_wins(verdicts, page);
        fputs("; class by class in the table below.</li>\n", page);
        return;
    }
    for (size_t i = 0; i < verdicts->count; i++) {
        const struct verdict *verdict = &verdicts->items[i];
        fputs(separator(i, verdicts->count), page);
        html_format(page, "%s for ", verdicts->report->kernels[verdict->winner]);
        put_class(verdicts, verdict, page);
        fprintf(page, " (%zu of ", verdict->wins);
        report_count(verdict->problems, "problem", page);
        if (!isnan(verdict->least_lead)) {
            fputs("; ", page);
            put_lead(verdict, page);
            fputs(" the next kernel", page);
            if (verdict->level > 0)
                fprintf(page, "; level with it on %zu: the 95 %% intervals meet", verdict->level);
        }
        fputs(")", page);
    }
    fputs(".</li>\n", page);
}

static const char roof_meaning[] =
    ". The roof is the best that this machine, measured at the same moment, could do.</li>\n";

/* The classes that are farthest from the roof and nearest to it. */
static void put_roof_span(const struct verdicts *verdicts, FILE *page)
{
    const struct verdict *least = NULL, *most = NULL;
    for (size_t i = 0; i < verdicts->count; i++) {
        const struct verdict *verdict = &verdicts->items[i];
        if (isnan(verdict->roof))
            continue;
        least = !least || verdict->roof < least->roof ? verdict : least;
        most = !most || verdict->roof > most->roof ? verdict : most;
    }
    if (!least) {
        fputs("unknown.</li>\n", page);
        return;
    }
    fputs("from ", page);
    report_percent(least->roof, page);
    fputs(" in ", page);
    put_class(verdicts, least, page);
    fputs(" to ", page);
    report_percent(most->roof, page);
    fputs(" in ", page);
    put_class(verdicts, most, page);
    fputs(roof_meaning, page);
}

static void put_roofs(const struct verdicts *verdicts, FILE *page)
{
    fputs("<li><strong>Share of the roof</strong> that the fastest points reach: ", page);
    if (verdicts->count > SPELT_OUT) {
        put_roof_span(verdicts, page);
        return;
    }
    for (size_t i = 0; i < verdicts->count; i++) {
        const struct verdict *verdict = &verdicts->items[i];
        fputs(separator(i, verdicts->count), page);
        if (isnan(verdict->roof)) {
            fputs("unknown", page);
        } else {
            report_percent(verdict->roof, page);
        }
        fputs(" in ", page);
        put_class(verdicts, verdict, page);
    }
    fputs(roof_meaning, page);
}

/* ---- what holds the rest back ------------------------------------------------------------------------------------ */

static const char *cause_words(const char *cause)
{
    static const struct {
        const char *cause, *words;
    } known[] = {{"kernel", "the kernel's own instructions"},
                 {"noisy", "other work on the machine"},
                 {"throttled", "a CPU quota that stopped it"},
                 {"starved", "fewer tasks than threads"},
                 {"imbalance", "threads with more work than others"},
                 {"smt-shared", "two threads on one core"},
                 {"compute-bound", "nothing but the arithmetic units"},
                 {"tanh-bound", "nothing but the rate of tanh"},
                 {"mixed-bound", "nothing but the roofs of its phases"},
                 {"cache-bound", "nothing but the bandwidth of the caches"},
                 {"dram-bound", "nothing but the bandwidth of memory"}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(cause, known[i].cause) == 0)
            return known[i].words;
    }
    return cause;
}

/* Counts the causes of the fastest points; verdict NULL: of all classes. */
static json_t *causes_of(const struct verdicts *verdicts, const struct verdict *verdict)
{
    json_t *causes = json_object();
    for (size_t i = 0; i < verdicts->contest_count; i++) {
        if (verdicts->contests[i].source != verdicts->source || (verdict && !belongs(verdicts, i, verdict)))
            continue;
        const char *cause = json_get_string(first_of(verdicts, i)->json, "cause", "not known");
        json_object_set_new(causes, cause, json_integer(json_get_int(causes, cause, 0) + 1));
    }
    return causes;
}

/* The most frequent first. */
static void put_causes(json_t *causes, FILE *page)
{
    size_t told = 0, count = json_object_size(causes);
    while (json_object_size(causes) > 0) {
        const char *cause, *most = NULL;
        json_t *times;
        json_object_foreach(causes, cause, times)
        {
            if (!most || json_integer_value(times) > json_get_int(causes, most, 0))
                most = cause;
        }
        assert(most);
        fputs(separator(told++, count), page);
        html_text(page, cause_words(most));
        fprintf(page, " (%lld)", (long long)json_get_int(causes, most, 0));
        json_object_del(causes, most);
    }
    json_decref(causes);
}

static void put_verdict_table(const struct verdicts *verdicts, FILE *page)
{
    static const char *const titles[] = {"class",         "#problems",     "fastest most often", "#wins",
                                         "over the next", "share of roof", "what holds it back"};
    html_table_begin(page, "The fastest points, class by class", titles, sizeof titles / sizeof titles[0]);
    for (size_t i = 0; i < verdicts->count; i++) {
        const struct verdict *verdict = &verdicts->items[i];
        html_row(page);
        fputs("<td>", page);
        put_class(verdicts, verdict, page);
        fprintf(page, "<td class=\"figure\">%zu", verdict->problems);
        html_cell(page, verdicts->report->kernels[verdict->winner]);
        fprintf(page, "<td class=\"figure\">%zu<td>", verdict->wins);
        if (isnan(verdict->least_lead))
            fputs("no rival", page);
        else
            put_lead(verdict, page);
        if (verdict->level > 0)
            fprintf(page, " (%zu level)", verdict->level);
        fputs("<td>", page);
        put_roof_range(verdict, page);
        if (verdict->noisy > 0)
            fprintf(page, " (%zu noisy)", verdict->noisy);
        fputs("<td class=\"long\">", page);
        put_causes(causes_of(verdicts, verdict), page);
    }
    html_table_end(page);
}

static void put_source(struct verdicts *verdicts, FILE *page)
{
    judge(verdicts);
    if (verdicts->count == 0) {
        fputs("<p class=\"note\">No point has a time: there is nothing to compare.</p>\n", page);
    } else {
        fputs("<ul class=\"sentences\">\n", page);
        put_fastest(verdicts, page);
        put_roofs(verdicts, page);
        fputs("<li><strong>What holds the fastest points back:</strong> ", page);
        put_causes(causes_of(verdicts, NULL), page);
        fputs(".</li>\n</ul>\n", page);
        put_verdict_table(verdicts, page);
    }
    free(verdicts->items);
}

void report_headline(const struct report *report, FILE *page)
{
    size_t count;
    struct report_contest *contests = report_contests(report, &count);
    report_portrait(report, page);
    for (size_t source = 0; source < report->source_count; source++) {
        struct verdicts verdicts = {.report = report, .source = source, .contests = contests, .contest_count = count};
        if (report->source_count > 1) {
            fputs("<h3>", page);
            html_text(page, report->sources[source].label);
            fputs("</h3>\n", page);
        }
        put_source(&verdicts, page);
    }
    report_warnings(report, page);
    free(contests);
}
