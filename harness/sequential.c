/* SPDX-License-Identifier: Apache-2.0
 *
 * The stop rule; see sequential.h.
 */
#include "sequential.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>

#include "signed_rank.h"

struct sequential_rule sequential_rule_for(double tau)
{
    struct sequential_rule rule = {.tau = tau,
                                   .confidence = 0.99,
                                   .same_confidence = {0.99, 0.999, 0.999, 0.997, 0.993},
                                   .change_confidence = {0.99, 0.996, 0.996, 0.992, 0.974},
                                   .looks = {8, 12, 16, 20, 24},
                                   .look_count = SEQUENTIAL_LOOKS};
    return rule;
}

static bool is_confidence(double value)
{
    return value > 0 && value < 1;
}

static bool rule_holds(const struct sequential_rule *rule)
{
    if (!(rule->tau > 0 && isfinite(rule->tau) && is_confidence(rule->confidence)))
        return false;
    if (rule->look_count < 1 || rule->look_count > SEQUENTIAL_LOOKS || rule->looks[0] < 1)
        return false;
    for (size_t i = 0; i < rule->look_count; i++)
        if (!is_confidence(rule->same_confidence[i]) || !is_confidence(rule->change_confidence[i]))
            return false;
    for (size_t i = 1; i < rule->look_count; i++)
        if (rule->looks[i] <= rule->looks[i - 1])
            return false;
    return true;
}

/* What a look sees, at the rule's three confidences for it. */
struct sight {
    struct signed_rank_interval plain, same, change;
};

static enum sequential_decision change(const struct sight *sight, double margin)
{
    if (sight->change.low > margin)
        return SEQUENTIAL_SLOWER;
    return sight->change.high < -margin ? SEQUENTIAL_FASTER : SEQUENTIAL_GO_ON;
}

typedef enum sequential_decision look_test(const struct sight *sight, double tau, double margin);

static enum sequential_decision gate_look(const struct sight *sight, double tau, double margin)
{
    if (sight->same.high < tau)
        return sight->plain.low <= -tau && sight->change.high < -margin ? SEQUENTIAL_FASTER : SEQUENTIAL_SAME;
    return sight->plain.high < tau ? SEQUENTIAL_GO_ON : change(sight, margin);
}

static enum sequential_decision duet_look(const struct sight *sight, double tau, double margin)
{
    if (-tau < sight->same.low && sight->same.high < tau)
        return SEQUENTIAL_SAME;
    return -tau < sight->plain.low && sight->plain.high < tau ? SEQUENTIAL_GO_ON : change(sight, margin);
}

static int look_at(const double *log_ratios, const struct sequential_rule *rule, size_t look, struct sight *sight)
{
    const size_t n = rule->looks[look];
    int code = signed_rank_estimate(log_ratios, n, rule->confidence, &sight->plain);
    if (code == 0)
        code = signed_rank_estimate(log_ratios, n, rule->same_confidence[look], &sight->same);
    if (code == 0)
        code = signed_rank_estimate(log_ratios, n, rule->change_confidence[look], &sight->change);
    return code;
}

static int judge_look(const double *log_ratios, const struct sequential_rule *rule, look_test *test,
                      struct sequential_verdict *verdict)
{
    const double tau = log1p(rule->tau), margin = log1p(rule->tau / 4);
    struct sight sight;
    int code = look_at(log_ratios, rule, verdict->look, &sight);
    if (code < 0)
        return code;
    verdict->decision = test(&sight, tau, margin);
    verdict->estimate = sight.plain.estimate;
    verdict->low = sight.plain.low;
    verdict->high = sight.plain.high;
    const struct signed_rank_interval *told = verdict->decision == SEQUENTIAL_SAME    ? &sight.same
                                              : verdict->decision == SEQUENTIAL_GO_ON ? &sight.plain
                                                                                      : &sight.change;
    verdict->told_low = told->low;
    verdict->told_high = told->high;
    verdict->smallest_detectable = expm1(
        fmax(margin + (sight.change.high - sight.change.low) / 2, tau - (sight.plain.high - sight.plain.low) / 2));
    return 0;
}

static int judge(const double *log_ratios, size_t n, const struct sequential_rule *rule, look_test *test,
                 struct sequential_verdict *verdict)
{
    if (!rule_holds(rule))
        return -EINVAL;
    struct sequential_verdict now = {.decision = SEQUENTIAL_GO_ON,
                                     .estimate = NAN,
                                     .low = NAN,
                                     .high = NAN,
                                     .told_low = NAN,
                                     .told_high = NAN,
                                     .p_slower = NAN,
                                     .p_faster = NAN,
                                     .smallest_detectable = INFINITY};
    const double margin = log1p(rule->tau / 4);
    size_t look = 0;
    for (; look < rule->look_count && rule->looks[look] <= n && now.decision == SEQUENTIAL_GO_ON; look++) {
        now.look = look;
        now.processes = rule->looks[look];
        int code = judge_look(log_ratios, rule, test, &now);
        if (code < 0)
            return code;
    }
    if (now.decision == SEQUENTIAL_GO_ON) {
        now.next_look = look < rule->look_count ? rule->looks[look] : 0;
        if (look == rule->look_count)
            now.decision = SEQUENTIAL_INCONCLUSIVE;
    }
    if (now.processes > 0) {
        struct signed_rank_p slower, faster;
        int code = signed_rank_test(log_ratios, now.processes, margin, &slower);
        if (code == 0)
            code = signed_rank_test(log_ratios, now.processes, -margin, &faster);
        if (code < 0)
            return code;
        now.p_slower = slower.greater;
        now.p_faster = faster.less;
    }
    *verdict = now;
    return 0;
}

int sequential_gate(const double *log_ratios, size_t n, const struct sequential_rule *rule,
                    struct sequential_verdict *verdict)
{
    return judge(log_ratios, n, rule, gate_look, verdict);
}

int sequential_duet(const double *log_ratios, size_t n, const struct sequential_rule *rule,
                    struct sequential_verdict *verdict)
{
    return judge(log_ratios, n, rule, duet_look, verdict);
}

const char *sequential_decision_name(enum sequential_decision decision)
{
    switch (decision) {
    case SEQUENTIAL_GO_ON:
        return "go on";
    case SEQUENTIAL_SAME:
        return "same";
    case SEQUENTIAL_SLOWER:
        return "slower";
    case SEQUENTIAL_FASTER:
        return "faster";
    case SEQUENTIAL_INCONCLUSIVE:
        return "inconclusive";
    }
    return "?";
}
