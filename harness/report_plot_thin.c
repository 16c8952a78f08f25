/* SPDX-License-Identifier: Apache-2.0
 *
 * Leaving out marks that would hide each other; see report_plot.h.
 */
#include <math.h>
#include <stdlib.h>

#include "report_plot.h"

struct cell {
    size_t record, kernel, source;
    struct plot_point at;
    bool noisy, keep; /* keep: outermost of its kernel */
    int x, y;         /* its spot */
};

static int compare(const void *left, const void *right)
{
    const struct cell *a = left, *b = right;
    const long order[] = {(long)a->kernel - (long)b->kernel,
                          (long)a->source - (long)b->source,
                          a->noisy - b->noisy,
                          a->x - b->x,
                          a->y - b->y,
                          b->keep - a->keep,
                          (long)a->record - (long)b->record};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (order[i])
            return order[i] < 0 ? -1 : 1;
    return 0;
}

static bool same_spot(const struct cell *a, const struct cell *b)
{
    return a->kernel == b->kernel && a->source == b->source && a->noisy == b->noisy && a->x == b->x && a->y == b->y;
}

/* Marks the outermost points of each kernel. */
static void keep_outermost(struct cell *cells, size_t count, size_t kernel)
{
    struct cell *outermost[4] = {NULL, NULL, NULL, NULL};
    for (size_t i = 0; i < count; i++) {
        struct cell *cell = &cells[i];
        if (cell->kernel != kernel)
            continue;
        if (!outermost[0] || cell->at.x < outermost[0]->at.x)
            outermost[0] = cell;
        if (!outermost[1] || cell->at.x > outermost[1]->at.x)
            outermost[1] = cell;
        if (!outermost[2] || cell->at.y < outermost[2]->at.y)
            outermost[2] = cell;
        if (!outermost[3] || cell->at.y > outermost[3]->at.y)
            outermost[3] = cell;
    }
    for (int edge = 0; edge < 4; edge++)
        if (outermost[edge])
            outermost[edge]->keep = true;
}

size_t plot_thin(const struct report *report, const struct plot *plot, size_t *records, struct plot_point *places,
                 size_t count, size_t most)
{
    struct cell *cells = calloc(count + 1, sizeof *cells);
    size_t kept = count;
    if (!cells)
        abort();
    for (size_t i = 0; i < count; i++) {
        const struct report_record *record = &report->records[records[i]];
        cells[i] = (struct cell){.record = records[i],
                                 .kernel = record->kernel,
                                 .source = record->source,
                                 .at = places[i],
                                 .noisy = record->noisy};
    }
    for (size_t kernel = 0; count > most && kernel < report->kernel_count; kernel++)
        keep_outermost(cells, count, kernel);
    for (double size = 1; kept > most && size < plot->width; size *= 1.5) {
        for (size_t i = 0; i < count; i++) {
            cells[i].x = (int)(plot_x(plot, cells[i].at.x) / size);
            cells[i].y = (int)(plot_y(plot, cells[i].at.y) / size);
        }
        qsort(cells, count, sizeof *cells, compare);
        kept = 0;
        for (size_t i = 0; i < count; i++)
            if (i == 0 || cells[i].keep || !same_spot(&cells[i], &cells[i - 1])) {
                records[kept] = cells[i].record;
                places[kept++] = cells[i].at;
            }
    }
    free(cells);
    return kept;
}
