/* SPDX-License-Identifier: Apache-2.0
 *
 * attnbench duet: a verdict on two kernels at every point of a sweep.
 */
#include <string.h>

#include "commands.h"
#include "duet_session.h"
#include "duet_table.h"
#include "json_util.h"

static int show(const struct duet_session *session, struct error *error)
{
    const struct options *options = &session->options;
    const struct output_style style = output_style(options->color, options->wide, stdout);
    const char *format = options->formats ? options->formats : options->quiet ? "" : "table";
    if (strcmp(format, "table") == 0) {
        duet_table_print(stdout, session->records, &style);
    } else if (strcmp(format, "json") == 0) {
        json_t *whole = duet_session_document(session);
        json_dumpf(whole, stdout, JSON_INDENT(2));
        fputc('\n', stdout);
        json_decref(whole);
    }
    return output_flush(stdout, "verdicts", error);
}

static int exit_code(const json_t *records)
{
    size_t i, bad = 0, open = 0, judged = 0;
    const json_t *record;
    json_array_foreach(records, i, record)
    {
        const char *status = json_get_string(record, "status", "");
        const char *verdict = json_get_string(record, "verdict", "");
        bad += strcmp(status, "wrong") == 0 || strcmp(status, "failed") == 0;
        open += strcmp(status, "unreached") == 0 || strcmp(verdict, "inconclusive") == 0;
        judged += strcmp(status, "skipped") != 0;
    }
    return duet_session_interrupted() ? EXIT_INTERRUPTED
           : bad                      ? EXIT_WRONG
           : open                     ? EXIT_INCONCLUSIVE
           : judged                   ? EXIT_OK
                                      : EXIT_NOTHING_RAN;
}

static int compare(struct duet_session *session, struct error *error)
{
    const size_t repeats = (size_t)session->options.repeats, count = session->pairs.count * repeats;
    int rc = 0;
    for (size_t v = 0; v < count && rc == 0 && !duet_session_interrupted(); v++) {
        json_t *record = duet_session_judge(session, &session->pairs.pairs[v / repeats]);
        json_array_append_new(session->records, record);
        duet_session_tell(session, v, count, record);
        rc = duet_session_write(session, record, error);
    }
    if (rc == 0)
        rc = show(session, error);
    return rc == 0 ? exit_code(session->records) : rc;
}

int command_duet(int argc, char **argv, struct error *error)
{
    struct duet_session session;
    bool done = false;
    int rc = duet_session_parse("duet", argc, argv, &session, &done, error);
    if (rc == 0 && !done)
        rc = duet_session_begin(argc, argv, &session, error);
    if (rc == 0 && !done)
        rc = compare(&session, error);
    duet_session_end(&session);
    return rc;
}
