/* SPDX-License-Identifier: Apache-2.0
 *
 * The report's last section: how it was measured, and with what; every context whole.
 */
#include <stdlib.h>
#include <string.h>

#include "json_util.h"
#include "report_html.h"
#include "report_parts.h"

static const char method[] =
    "<ul>\n"
    "<li>Kernels of one problem take turns within one process: what disturbs the machine disturbs all of them. Times "
    "of "
    "different runs do not compare as well.</li>\n"
    "<li>A time is the median of one call over all samples. The interval is the 95 % interval of that median by order "
    "statistics: no distribution is assumed. Fewer than 6 samples have none.</li>\n"
    "<li>GFLOP/s counts the useful FLOPs: query-key pairs that causal line, window and lengths rule out do not count. "
    "GB/s counts the least bytes that the problem must move. GFLOP and GB are 10<sup>9</sup>.</li>\n"
    "<li>The roof is what this machine could do at best on the same CPUs: the highest rate of multiply+add for the "
    "dtype, or the bandwidth of a buffer as large as the problem's data, whichever takes longer; layers take the sum "
    "over their phases. It is measured in "
    "turns "
    "with the kernels; the share is the median of the ratios of neighbours.</li>\n"
    "<li>Threads are bound as the placement says, and each thread's actual CPU is read back.</li>\n"
    "<li>Every timed output is held against a float64 reference within a bound that is derived for each element.</li>\n"
    "<li>Noisy (~): steal, involuntary switches, migrations, throttling or a drifting clock had a part in the time, "
    "also "
    "after it was measured again.</li>\n"
    "</ul>\n";

static void put_value(FILE *page, const json_t *value)
{
    if (!value || json_is_null(value)) {
        fputs("unknown", page);
    } else if (json_is_string(value)) {
        html_text(page, json_string_value(value));
    } else if (json_is_boolean(value)) {
        fputs(json_is_true(value) ? "yes" : "no", page);
    } else {
        char *text = json_dumps(value, JSON_LINE_FLAGS | JSON_ENCODE_ANY);
        html_text(page, text);
        free(text);
    }
}

static void begin_item(FILE *page, const char *name)
{
    fputs("\n<div><dt>", page);
    html_text(page, name);
    fputs("</dt><dd>", page);
}

static void put_item(FILE *page, const char *name, const json_t *value)
{
    begin_item(page, name);
    put_value(page, value);
    fputs("</dd></div>", page);
}

/* An object as an item a key; what is an object itself stands as JSON. */
static void put_object(FILE *page, const json_t *object)
{
    const char *key;
    const json_t *value;
    if (json_object_size(object) == 0) {
        fputs("<p class=\"note\">Nothing recorded.</p>\n", page);
        return;
    }
    fputs("<dl class=\"facts\">", page);
    json_object_foreach((json_t *)object, key, value) put_item(page, key, value);
    fputs("\n</dl>\n", page);
}

static void put_command(FILE *page, const json_t *context)
{
    size_t index;
    const json_t *word;
    begin_item(page, "Command");
    fputs("<code>", page);
    json_array_foreach((json_t *)json_object_get(context, "command"), index, word)
    {
        html_text(page, index > 0 ? " " : "");
        html_text(page, json_is_string(word) ? json_string_value(word) : "");
    }
    fputs("</code></dd></div>", page);
}

static void put_context(const struct report_source *source, FILE *page)
{
    static const struct {
        const char *key, *name;
    } items[] = {{"config", "Config"},
                 {"seed", "Seed"},
                 {"time_utc", "Begun"},
                 {"run_id", "Run"},
                 {"host", "Host"},
                 {"cpu_model", "CPU"},
                 {"microcode", "Microcode"},
                 {"hypervisor", "Hypervisor"},
                 {"governor", "Frequency governor"},
                 {"turbo", "Turbo"},
                 {"smt", "SMT"},
                 {"thp", "Transparent huge pages"},
                 {"cgroup", "Control group"},
                 {"kernel_release", "Linux"},
                 {"compiler", "Compiler"},
                 {"flags", "Compiler flags"},
                 {"build_commit", "attnbench's commit"},
                 {"build_dirty", "Changes beyond that commit"}};
    const json_t *context = source->context;
    fputs("<dl class=\"facts\">", page);
    put_command(page, context);
    for (size_t i = 0; i < sizeof items / sizeof items[0]; i++)
        put_item(page, items[i].name, json_object_get(context, items[i].key));
    fputs("\n</dl>\n<h4>Libraries</h4>\n", page);
    put_object(page, json_object_get(context, "libraries"));
    fputs("<h4>OpenMP</h4>\n", page);
    put_object(page, json_object_get(context, "omp"));
    char *whole = json_dumps(context, JSON_INDENT(1));
    fputs("<details class=\"data\"><summary>The whole context as recorded</summary><pre tabindex=\"0\">", page);
    html_lines(page, whole);
    fputs("</pre></details>\n", page);
    free(whole);
}

void report_method(const struct report *report, FILE *page)
{
    fputs(method, page);
    for (size_t i = 0; i < report->source_count; i++) {
        fputs("<h3>", page);
        html_format(page, "%s", report->source_count > 1 ? report->sources[i].label : report->sources[i].path);
        fputs("</h3>\n", page);
        put_context(&report->sources[i], page);
    }
}
