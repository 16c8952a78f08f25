/* SPDX-License-Identifier: Apache-2.0
 *
 * The page around the report's sections: one file with its style and script inside, which asks for nothing else.
 */
#include "json_util.h"
#include "report_html.h"
#include "report_parts.h"

enum { SECTION_PARTS = 3 };

struct section {
    const char *id, *title;
    void (*parts[SECTION_PARTS])(const struct report *report, FILE *page);
    bool several_only; /* makes sense with more than one source */
};

static const struct section sections[] = {
    {"headline", "What came out", {report_headline}, false},
    {"roofline", "Roofline", {report_plot_roofline}, false},
    {"shapes", "Kernel by shape", {report_heat_map, report_plot_throughput, report_phases}, false},
    {"scaling", "Scaling and placement", {report_plot_scaling}, false},
    {"rivals", "Rivals", {report_plot_rivals}, false},
    {"sources", "Side by side", {report_comparison}, true},
    {"correctness", "Correctness", {report_correctness}, false},
    {"records", "Every record", {report_records}, false},
    {"method", "How it was measured", {report_method}, false},
};
enum { SECTIONS = sizeof sections / sizeof sections[0] };

static bool is_shown(const struct report *report, const struct section *section)
{
    return !section->several_only || report->source_count > 1;
}

static void put_title(const struct report *report, FILE *page)
{
    const json_t *context = report->sources[0].context;
    if (report->source_count > 1) {
        html_format(page, "%zu sources compared", report->source_count);
        return;
    }
    html_format(page, "%s on %s", json_get_string(context, "config", "attention"),
                json_get_string(context, "cpu_model", "an unknown CPU"));
}

static void put_contents(const struct report *report, FILE *page)
{
    fputs("<nav aria-label=\"Contents\"><ol>", page);
    for (int i = 0; i < SECTIONS; i++) {
        if (is_shown(report, &sections[i]))
            fprintf(page, "\n<li><a href=\"#%s\">%s</a></li>", sections[i].id, sections[i].title);
    }
    fputs("\n</ol></nav>\n", page);
}

static void put_section(const struct report *report, const struct section *section, FILE *page)
{
    fprintf(page, "<section id=\"%s\" aria-labelledby=\"%s-title\">\n<h2 id=\"%s-title\">%s</h2>\n", section->id,
            section->id, section->id, section->title);
    for (int i = 0; i < SECTION_PARTS; i++) {
        if (section->parts[i])
            section->parts[i](report, page);
    }
    fputs("</section>\n", page);
}

void report_write(const struct report *report, FILE *file)
{
    fputs(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n<title>attnbench: ",
        file);
    put_title(report, file);
    fprintf(file, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<header>\n<p class=\"brand\">attnbench</p>\n<h1>",
            report_css);
    put_title(report, file);
    fputs("</h1>\n", file);
    put_contents(report, file);
    fputs("</header>\n<main>\n", file);
    if (!report->gnuplot)
        fputs("<p class=\"warning\" role=\"note\">This page has no plots: gnuplot could not be used where it was made. "
              "The figures behind them stand in their places.</p>\n",
              file);
    for (int i = 0; i < SECTIONS; i++) {
        if (is_shown(report, &sections[i]))
            put_section(report, &sections[i], file);
    }
    fprintf(file, "</main>\n<div id=\"tip\" role=\"tooltip\" hidden></div>\n<script>\n%s</script>\n</body>\n</html>\n",
            report_js);
}
