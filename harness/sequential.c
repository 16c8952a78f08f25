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
                                   .same_confidence = {0.99, 0.997, 0.997, 0.997, 0.997},
                                   .looks = {8, 12, 16, 20, 24},
                                   .look_count = SEQUENTIAL_LOOKS};
    return rule;
}

static bool rule_holds(const struct sequential_rule *rule)
{
    if (!(rule->tau > 0 && isfinite(rule->tau) && rule->confidence > 0 && rule->confidence < 1))
        return false;
    if (rule->look_count < 1 || rule->look_count > SEQUENTIAL_LOOKS || rule->looks[0] < 1)
        return false;
    for (size_t i = 0; i < rule->look_count; i++)
        if (!(rule->same_confidence[i] > 0 && rule->same_confidence[i] < 1))
            return false;
    for (size_t i = 1; i < rule->look_count; i++)
        if (rule->looks[i] <= rule->looks[i - 1])
            return false;
    return true;
}

static enum sequential_decision change(double low, double high, double margin)
{
    if (low > margin)
        return SEQUENTIAL_SLOWER;
    return high < -margin ? SEQUENTIAL_FASTER : SEQUENTIAL_GO_ON;
}

/* plain: at the rule's confidence; wide: at that of the look's test for same. */
typedef enum sequential_decision look_test(const struct signed_rank_interval *plain,
                                           const struct signed_rank_interval *wide, double tau, double margin);

static enum sequential_decision gate_look(const struct signed_rank_interval *plain,
                                          const struct signed_rank_interval *wide, double tau, double margin)
{
    if (wide->high < tau)
        return plain->low <= -tau && plain->high < -margin ? SEQUENTIAL_FASTER : SEQUENTIAL_SAME;
    return plain->high < tau ? SEQUENTIAL_GO_ON : change(plain->low, plain->high, margin);
}

static enum sequential_decision duet_look(const struct signed_rank_interval *plain,
                                          const struct signed_rank_interval *wide, double tau, double margin)
{
    if (-tau < wide->low && wide->high < tau)
        return SEQUENTIAL_SAME;
    return -tau < plain->low && plain->high < tau ? SEQUENTIAL_GO_ON : change(plain->low, plain->high, margin);
}

static int judge_look(const double *log_ratios, const struct sequential_rule *rule, look_test *test,
                      struct sequential_verdict *verdict)
{
    const double tau = log1p(rule->tau), margin = log1p(rule->tau / 4);
    struct signed_rank_interval interval, wide;
    int code = signed_rank_estimate(log_ratios, verdict->processes, rule->confidence, &interval);
    if (code == 0)
        code = signed_rank_estimate(log_ratios, verdict->processes, rule->same_confidence[verdict->look], &wide);
    if (code < 0)
        return code;
    verdict->estimate = interval.estimate;
    verdict->low = interval.low;
    verdict->high = interval.high;
    verdict->decision = test(&interval, &wide, tau, margin);
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
        const double half = (now.high - now.low) / 2;
        now.smallest_detectable = expm1(fmax(margin + half, log1p(rule->tau) - half));
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
