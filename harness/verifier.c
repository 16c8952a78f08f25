/* SPDX-License-Identifier: Apache-2.0
 *
 * Running checks and counting them; see verifier.h.
 */
#include "verifier.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../kernels/schedule/schedule.h"
#include "clock.h"
#include "environment.h"
#include "intern.h"
#include "isa.h"
#include "json_util.h"
#include "registry.h"

enum { POLL_MS = 200, SHOWN_MOST = 20 };

int verifier_create(const struct topology *topology, const struct effort *effort, const char *dump_dir, FILE *report,
                    struct verifier *verifier, struct error *error)
{
    *verifier = (struct verifier){
        .topology = topology,
        .timeout_s = effort->point_timeout_s,
        .memory_limit = effort->memory_limit,
        .dump_dir = dump_dir,
        .report = report,
    };
    if (dump_dir && mkdir(dump_dir, 0777) < 0 && errno != EEXIST)
        return error_system(error, errno, "--dump: cannot create %s", dump_dir);
    return crew_create(topology, &verifier->crew, error);
}

void verifier_release(struct verifier *verifier)
{
    if (verifier->crew.exchange.mailbox)
        crew_release(&verifier->crew);
}

static struct verifier_tally *tally_of(struct verifier *verifier, const char *kernel)
{
    for (size_t k = 0; k < verifier->kernels; k++)
        if (verifier->tallies[k].kernel == kernel)
            return &verifier->tallies[k];
    if (verifier->kernels == VERIFIER_MOST_KERNELS)
        return &verifier->tallies[VERIFIER_MOST_KERNELS - 1];
    struct verifier_tally *tally = &verifier->tallies[verifier->kernels++];
    tally->kernel = kernel;
    return tally;
}

/* Fields that name the task's data, for worker and referee alike. */
static json_t *task_request(const struct verifier_task *task, const char *op)
{
    json_t *request = json_pack("{s:s,s:o,s:i}", "op", op, "spec", spec_to_json(&task->spec), "set", 1);
    if (task->case_dir)
        json_object_set_new(request, "case", json_string(task->case_dir));
    return request;
}

static char *repro_of(const struct verifier_task *task, const struct verifier_member *member)
{
    if (task->case_dir) {
        char *text = NULL;
        return asprintf(&text, "attnbench verify --kernel %s --case %s", member->kernel, task->case_dir) < 0 ? NULL
                                                                                                             : text;
    }
    struct point point = *task->seat;
    point.spec = task->spec;
    point.kernel = member->kernel;
    point.source = registry_origin(member->kernel)->source;
    point.schedule_requested = member->schedule;
    char *text = point_repro(&point);
    char *rest = text ? strstr(text, "run ") : NULL;
    char *verify = NULL;
    if (rest && asprintf(&verify, "attnbench verify %s", rest + 4) >= 0) {
        free(text);
        return verify;
    }
    return text;
}

static void dump(struct verifier *verifier, const struct verifier_task *task, const struct verifier_member *member)
{
    struct error why;
    const char *directory =
        intern_format("%s/%s-%lld", verifier->dump_dir, member->kernel, (long long)verifier->dumped);
    json_t *request = task_request(task, "dump");
    json_object_set_new(request, "directory", json_string(directory));
    json_object_set_new(request, "note",
                        json_sprintf("fails with kernel %s, schedule %s", member->kernel, member->schedule));
    json_t *answer = crew_ask_referee(&verifier->crew, request, &why);
    if (answer)
        fprintf(verifier->report, "    written to %s\n", directory);
    else
        fprintf(verifier->report, "    could not be written to %s: %s\n", directory, why.text);
    verifier->dumped++;
    json_decref(answer);
}

static void blame(struct verifier *verifier, const struct verifier_task *task, const struct verifier_member *member,
                  const char *kind, const char *reason)
{
    struct verifier_tally *tally = tally_of(verifier, member->kernel);
    int64_t so_far = tally->wrong + tally->failed;
    if (strcmp(kind, "wrong") == 0)
        tally->wrong++;
    else
        tally->failed++;
    if (so_far >= SHOWN_MOST)
        return;
    char *repro = repro_of(task, member);
    fprintf(verifier->report, "%s: %s: %s\n    %s%s\n", kind, member->kernel, reason, repro ? repro : "",
            task->far ? " (with k and v spread over more than 2^31 elements)" : "");
    free(repro);
    if (so_far + 1 == SHOWN_MOST)
        fprintf(verifier->report, "    further ones of %s are only counted\n", member->kernel);
    if (verifier->dump_dir)
        dump(verifier, task, member);
    fflush(verifier->report);
}

static void on_output(struct verifier *verifier, const struct verifier_task *task, const struct verifier_member *member,
                      const json_t *event)
{
    struct error why;
    json_t *request = task_request(task, "judge");
    json_object_set(request, "segment", json_object_get(event, "segment"));
    json_object_set(request, "out_bytes", json_object_get(event, "out_bytes"));
    json_object_set(request, "weights_bytes", json_object_get(event, "weights_bytes"));
    json_t *judgement = crew_ask_referee(&verifier->crew, request, &why);
    struct verifier_tally *tally = tally_of(verifier, member->kernel);
    if (!judgement) {
        blame(verifier, task, member, "failed", why.text);
        return;
    }
    tally->checked++;
    double ratio = json_get_number(judgement, "err_over_bound", 0);
    if (json_is_true(json_object_get(judgement, "wrong")))
        blame(verifier, task, member, "wrong", json_get_string(judgement, "reason", "wrong result"));
    else if (ratio > tally->err_over_bound)
        tally->err_over_bound = ratio;
    json_decref(judgement);
}

/* Members seats[from..count) in one request; returns how many were dealt with: fewer where the worker died. */
static size_t converse(struct verifier *verifier, const struct verifier_task *task, const size_t *seats, size_t count,
                       struct crew_worker *worker)
{
    struct mailbox *mailbox = verifier->crew.exchange.mailbox;
    json_t *request = task_request(task, "check"), *members = json_array();
    for (size_t s = 0; s < count; s++) {
        const struct verifier_member *member = &task->members[seats[s]];
        json_t *asked = json_pack("{s:s,s:s}", "kernel", member->kernel, "schedule", member->schedule);
        if (registry_origin(member->kernel)->command)
            json_object_set(asked, "peer", registry_origin(member->kernel)->command);
        json_array_append_new(members, asked);
    }
    json_object_set_new(request, "point_timeout_s", json_real(verifier->timeout_s));
    json_object_set_new(request, "memory_limit", json_real(environment_memory_limit(verifier->memory_limit)));
    json_object_set_new(request, "members", members);
    json_object_set_new(request, "far", json_boolean(task->far));
    atomic_store(&mailbox->turn, -1);
    size_t finished = 0;
    int rc = child_send(&worker->child, request);
    while (rc == 0) {
        json_t *event = NULL;
        rc = lines_read(&worker->child.from, POLL_MS, &event);
        if (rc == -ETIMEDOUT) {
            rc = 0;
            int turn = atomic_load(&mailbox->turn);
            if (turn < 0 || clock_ns() - (double)atomic_load(&mailbox->turn_began_ns) < 1e9 * verifier->timeout_s)
                continue;
            crew_bury(worker, true);
            blame(verifier, task, &task->members[seats[turn]], "failed",
                  intern_format("still running after --point-timeout %g s; killed", verifier->timeout_s));
            return (size_t)turn + 1;
        }
        if (rc < 0)
            break;
        const char *kind = json_get_string(event, "event", "");
        const struct verifier_member *member = &task->members[seats[json_get_int(event, "member", 0)]];
        bool over = strcmp(kind, "done") == 0;
        if (strcmp(kind, "output") == 0) {
            on_output(verifier, task, member, event);
            rc = child_send(&worker->child, json_pack("{s:s}", "op", "continue"));
        } else if (strcmp(kind, "result") == 0) {
            const char *failure = json_get_string(event, "failure", NULL);
            if (failure)
                blame(verifier, task, member, "failed", failure);
            else if (json_get_string(event, "refused", NULL))
                tally_of(verifier, member->kernel)->skipped++;
            finished++;
        } else if (strcmp(kind, "error") == 0) {
            for (; finished < count; finished++)
                blame(verifier, task, &task->members[seats[finished]], "failed", json_get_string(event, "text", ""));
            over = true;
        }
        json_decref(event);
        if (over)
            return count;
    }
    int turn = atomic_load(&mailbox->turn);
    const char *epitaph = crew_bury(worker, rc == -EPROTO);
    size_t guilty = turn >= 0 && (size_t)turn < count ? (size_t)turn : finished;
    if (guilty < count)
        blame(verifier, task, &task->members[seats[guilty]], "failed",
              intern_format("the worker process was %s while this kernel ran", epitaph));
    return guilty + 1;
}

/* Why kernel and schedule can't do the task; NULL: they can. */
static const char *refusal(const struct verifier_task *task, const struct verifier_member *member, int64_t *lengths)
{
    struct attn_problem problem;
    spec_problem(&task->spec, lengths, lengths + task->spec.B, &problem);
    const char *reason = registry_refusal(member->kernel, &problem, isa_available());
    const struct attn_schedule *schedule = attn_schedule_find(member->schedule);
    if (!reason && schedule && schedule->refuse) /* what does not do the rule has been refused above */
        reason = schedule->refuse(registry_attention(member->kernel, problem.rule), &problem, task->seat->threads);
    return reason;
}

int verifier_check(struct verifier *verifier, const struct verifier_task *task, struct error *error)
{
    size_t seats[VERIFIER_MOST_MEMBERS];
    size_t count = 0;
    int64_t *lengths = calloc(2 * (size_t)task->spec.B + 1, sizeof *lengths);
    if (!lengths)
        return error_system(error, ENOMEM, "a batch of %lld", (long long)task->spec.B);
    verifier->problems++;
    for (size_t m = 0; m < task->count; m++) {
        struct verifier_tally *tally = tally_of(verifier, task->members[m].kernel);
        if (refusal(task, &task->members[m], lengths))
            tally->skipped++;
        else
            seats[count++] = m;
    }
    free(lengths);
    for (size_t done = 0; done < count;) {
        struct crew_worker *worker = crew_worker(&verifier->crew, task->seat, error);
        if (!worker)
            return error->exit_code == EXIT_OK ? -ENOTSUP : -EIO;
        done += converse(verifier, task, seats + done, count - done, worker);
    }
    return 0;
}

static void print_tally(FILE *report, const struct verifier_tally *tally)
{
    fprintf(report, "%-24s %8lld %8lld %8lld %8lld", tally->kernel, (long long)tally->checked, (long long)tally->wrong,
            (long long)tally->failed, (long long)tally->skipped);
    if (tally->checked > tally->wrong)
        fprintf(report, "  %.3f\n", tally->err_over_bound);
    else
        fprintf(report, "  -\n");
}

int verifier_report(const struct verifier *verifier, bool quiet)
{
    int64_t checked = 0, bad = 0, skipped = 0;
    if (!quiet)
        fprintf(verifier->report, "%-24s %8s %8s %8s %8s  %s\n", "kernel", "checked", "wrong", "failed", "skipped",
                "largest error / bound");
    for (size_t k = 0; k < verifier->kernels; k++) {
        const struct verifier_tally *tally = &verifier->tallies[k];
        if (!quiet)
            print_tally(verifier->report, tally);
        checked += tally->checked;
        bad += tally->wrong + tally->failed;
        skipped += tally->skipped;
    }
    if (!quiet)
        fprintf(verifier->report, "%lld problems, %lld results checked, %lld wrong or failed, %lld skipped\n",
                (long long)verifier->problems, (long long)checked, (long long)bad, (long long)skipped);
    if (bad)
        return EXIT_WRONG;
    return checked ? EXIT_OK : EXIT_NOTHING_RAN;
}
