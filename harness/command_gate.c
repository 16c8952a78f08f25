/* SPDX-License-Identifier: Apache-2.0
 *
 * attnbench gate: the kernels of two builds over a sweep, with a verdict for CI.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "foreign.h"
#include "gate_report.h"
#include "gate_run.h"
#include "intern.h"
#include "json_util.h"
#include "values.h"
#include "whole_file.h"

/* NEW that was left out: the library beside the program, as Make puts it there. */
static const char *library_beside_program(void)
{
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path, '/');
    return intern_format("%.*slibattnkernels.so", slash ? (int)(slash + 1 - path) : 0, path);
}

static int check_sides(struct options *options, struct error *error)
{
    char shown[QUOTED_BYTES];
    const bool left_out = !options->sides[1];
    if (left_out)
        options->sides[1] = library_beside_program();
    for (int s = 0; s < 2; s++)
        if (!foreign_library_suffix(options->sides[s]))
            return error_usage(error, "%s is not FILE.so (make kernels builds one)", quoted(options->sides[s], shown));
    if (left_out && access(options->sides[1], R_OK) < 0)
        return error_usage(error, "%s: %s: NEW was left out (make kernels builds it)", options->sides[1],
                           strerror(errno));
    return 0;
}

static json_t *counts_json(const struct gate_result *result)
{
    json_t *counts = json_object();
    for (int outcome = 0; outcome < GATE_OUTCOMES; outcome++)
        json_object_set_new(counts, gate_outcome_name((enum gate_outcome)outcome),
                            json_integer((json_int_t)result->counts[outcome]));
    return counts;
}

static json_t *document(const struct duet_session *session, const struct gate_report *report)
{
    json_t *whole = duet_session_document(session);
    json_object_set(whole, "points", (json_t *)report->records);
    json_t *gate = json_pack(
        "{s:s,s:s,s:s,s:f,s:f,s:f,s:f,s:o,s:O,s:b,s:i,s:f,s:o,s:I,s:I}", "base", report->base, "new", report->fresh,
        "headline", gate_headline(report), "tau", report->tau_least, "tau_most", report->tau_most,
        "false_discovery_rate", GATE_FALSE_DISCOVERY_RATE, "confirming_p", GATE_CONFIRMING_P, "counts",
        counts_json(report->result), "controls", report->controls, "tainted", report->result->tainted, "exit_code",
        report->interrupted ? EXIT_INTERRUPTED : (int)report->result->exit_code, "spent_s", report->spent_s,
        "max_time_s", report->max_time_s > 0 ? json_real(report->max_time_s) : json_null(), "processes",
        (json_int_t)report->processes, "planned", (json_int_t)report->planned);
    static const char *const only_in[DUET_SIDES] = {"only_in_base", "only_in_new"};
    for (int s = 0; s < DUET_SIDES; s++)
        if (session->pairs.only_in[s])
            json_object_set_new(gate, only_in[s], json_string(session->pairs.only_in[s]));
    json_object_set_new(whole, "gate", gate);
    return whole;
}

static void put_document(FILE *file, const struct duet_session *session, const struct gate_report *report)
{
    json_t *whole = document(session, report);
    json_dumpf(whole, file, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    fputc('\n', file);
    json_decref(whole);
}

enum form { FORM_JSON, FORM_MARKDOWN, FORM_JUNIT, FORMS };

/* NULL: not asked for. */
static const char *path_of(const struct options *options, enum form form)
{
    return form == FORM_JSON ? options->json : form == FORM_MARKDOWN ? options->markdown : options->junit;
}

static int write_file(const char *path, enum form form, const struct duet_session *session,
                      const struct gate_report *report, struct error *error)
{
    struct whole_file file;
    if (!path)
        return 0;
    int rc = whole_file_open(path, &file, error);
    if (rc < 0)
        return rc;
    if (form == FORM_JSON)
        put_document(file.stream, session, report);
    else if (form == FORM_MARKDOWN)
        gate_markdown_print(file.stream, report);
    else
        gate_junit_print(file.stream, report);
    return whole_file_commit(&file, error);
}

/* The job's summary, to which each step of a job adds. report NULL: nothing, to see whether that works. */
static int append_summary(const struct gate_report *report, struct error *error)
{
    const char *path = getenv("GITHUB_STEP_SUMMARY");
    if (!path || !*path)
        return 0;
    FILE *file = fopen(path, "ae");
    int rc = 0;
    if (file && report)
        gate_markdown_print(file, report);
    if (!file || fclose(file) != 0) {
        rc = error_system(error, errno, "$GITHUB_STEP_SUMMARY: %s", path);
        error->exit_code = EXIT_UNWRITTEN;
    }
    return rc;
}

/* What is written only at the end should not fail only then. */
static int check_outputs(const struct options *options, struct error *error)
{
    int rc = 0;
    for (int form = 0; form < FORMS && rc == 0; form++) {
        const char *path = path_of(options, (enum form)form);
        rc = path ? whole_file_check(path, error) : 0;
    }
    return rc == 0 ? append_summary(NULL, error) : rc;
}

/* Of two outcomes the first that is an error; *error is to be that one's, and told is next's. */
static int first_error(int rc, int next, const struct error *told, struct error *error)
{
    if (rc < 0)
        return rc;
    if (next < 0)
        *error = *told;
    return next;
}

/* Everywhere: who can't be told must not keep others from being told. */
static int show(const struct duet_session *session, const struct gate_report *report, struct error *error)
{
    const struct options *options = &session->options;
    const struct output_style style = output_style(options->color, options->wide, stdout);
    const char *format = options->formats ? options->formats : options->quiet ? "" : "table";
    const char *actions = getenv("GITHUB_ACTIONS");
    const bool json = strcmp(format, "json") == 0;
    if (json)
        put_document(stdout, session, report);
    else if (strcmp(format, "table") == 0)
        gate_table_print(stdout, report, &style);
    if (actions && strcmp(actions, "true") == 0) /* which reads them from either stream */
        gate_annotations_print(json ? stderr : stdout, report);
    struct error told;
    int rc = output_flush(stdout, "verdicts", error);
    for (int form = 0; form < FORMS; form++) {
        const char *path = path_of(options, (enum form)form);
        rc = first_error(rc, write_file(path, (enum form)form, session, report, &told), &told, error);
    }
    return first_error(rc, append_summary(report, &told), &told, error);
}

/* What slowdowns matter to the points that were to be judged. */
static void range_of_tau(const struct duet_session *session, double *least, double *most)
{
    *least = *most = session->run.tau > 0 ? session->run.tau : DUET_TAU;
    bool first = true;
    for (size_t p = 0; p < session->pairs.count; p++) {
        const struct point *point = session->pairs.pairs[p].point;
        if (point->skip_reason)
            continue;
        const double tau = duet_tau(&session->run, point);
        *least = first || tau < *least ? tau : *least;
        *most = first || tau > *most ? tau : *most;
        first = false;
    }
}

static int run(struct duet_session *session, struct error *error)
{
    struct gate_run gate;
    int rc = gate_run_all(session, &gate, error);
    json_t *ordered = gate_worst_first(session->records);
    struct gate_report report = {
        .base = session->options.sides[0],
        .fresh = session->options.sides[1],
        .context = session->context,
        .records = ordered,
        .controls = gate.controls,
        .result = &gate.result,
        .spent_s = gate.spent_s,
        .max_time_s = session->pairs.plan.effort.max_time_s,
        .processes = session->run.processes,
        .planned = session->pairs.count,
        .interrupted = duet_session_interrupted(),
    };
    range_of_tau(session, &report.tau_least, &report.tau_most);
    if (rc == 0) {
        struct error told;
        rc = first_error(0, gate.unwritten, &gate.write_error, error);
        rc = first_error(rc, show(session, &report, &told), &told, error);
    }
    if (rc == 0)
        rc = report.interrupted ? EXIT_INTERRUPTED : (int)gate.result.exit_code;
    json_decref(ordered);
    gate_run_release(&gate);
    return rc;
}

int command_gate(int argc, char **argv, struct error *error)
{
    struct duet_session session;
    bool done = false;
    int rc = duet_session_parse("gate", argc, argv, &session, &done, error);
    if (rc == 0 && !done)
        rc = check_sides(&session.options, error);
    if (rc == 0 && !done)
        rc = check_outputs(&session.options, error);
    if (rc == 0 && !done) {
        rc = duet_session_begin(argc, argv, &session, error);
        if (rc < 0 && error->exit_code == EXIT_INCONCLUSIVE)
            error_prefix(error, rc, "not comparable");
    }
    if (rc == 0 && !done) /* once more, as one may be the journal that is now being written to */
        rc = check_outputs(&session.options, error);
    if (rc == 0 && !done)
        rc = run(&session, error);
    duet_session_end(&session);
    return rc;
}
