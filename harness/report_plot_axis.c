/* SPDX-License-Identifier: Apache-2.0
 *
 * Ranges and ticks of the report's figures; see report_plot.h.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report_plot.h"

static const double log_room = 1.15;   /* factor beyond the outermost value */
static const double value_room = 0.06; /* share of the axis beyond the outermost value */
static const double letter = 7.5;      /* pixels, of tick texts */

double plot_axis_place(const struct plot_axis *axis, double value)
{
    if (axis->log)
        return log(value / axis->low) / log(axis->high / axis->low);
    return (value - axis->low) / (axis->high - axis->low);
}

/* "0.5", "20", "5000", "50k", "2M" */
static void put_decimal(double value, char text[PLOT_TICK_TEXT])
{
    if (fabs(value) >= 1e6)
        snprintf(text, PLOT_TICK_TEXT, "%.4gM", value / 1e6);
    else if (fabs(value) >= 1e4)
        snprintf(text, PLOT_TICK_TEXT, "%.4gk", value / 1e3);
    else
        snprintf(text, PLOT_TICK_TEXT, "%.4g", value);
}

static void add_tick(struct plot_axis *axis, double at)
{
    if (axis->tick_count == PLOT_TICKS)
        return;
    axis->ticks[axis->tick_count].at = at;
    put_decimal(at, axis->ticks[axis->tick_count].text);
    axis->tick_count++;
}

/* Steps of a decade, from the coarsest to the finest choice; 0 ends one. */
static const double decade_steps[][10] = {{1}, {1, 3}, {1, 2, 5}, {1, 1.5, 2, 3, 4, 5, 6, 8}};
enum { STEP_CHOICES = sizeof decade_steps / sizeof *decade_steps, LOG_TICKS = 7 };

/* Ticks of one choice within the axis: counted, or added too. every: of how many decades one has ticks. */
static int log_ticks(struct plot_axis *axis, int choice, int every, bool add)
{
    int count = 0;
    for (int power = (int)floor(log10(axis->low)); power <= (int)ceil(log10(axis->high)); power++)
        for (int i = 0; power % every == 0 && i < 10 && decade_steps[choice][i] > 0; i++) {
            const double at = decade_steps[choice][i] * pow(10, power);
            if (at < axis->low * (1 - 1e-9) || at > axis->high * (1 + 1e-9))
                continue;
            count++;
            if (add)
                add_tick(axis, at);
        }
    return count;
}

void plot_axis_log(struct plot_axis *axis, double least, double most)
{
    int choice = STEP_CHOICES - 1, every = 1;
    axis->log = true;
    axis->low = least / log_room;
    axis->high = most * log_room;
    axis->tick_count = 0;
    while (choice > 0 && log_ticks(axis, choice, 1, false) > LOG_TICKS)
        choice--;
    while (log_ticks(axis, choice, every, false) > LOG_TICKS)
        every++;
    log_ticks(axis, choice, every, true);
}

void plot_axis_linear(struct plot_axis *axis, double least, double most)
{
    least = least < 0 ? least : 0;
    most = most > least ? most : least + 1;
    const double raw = (most - least) / 5, power = pow(10, floor(log10(raw))), digit = raw / power;
    const double step = power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
    axis->log = false;
    axis->tick_count = 0;
    axis->low = step * floor(least / step + 1e-9);
    axis->high = step * ceil(most / step * 1.0001);
    for (int i = 0; axis->low + i * step <= axis->high + step / 2; i++)
        add_tick(axis, axis->low + i * step);
}

/* As the command line writes sizes: 16k is 16384. */
static void put_value(double value, char text[PLOT_TICK_TEXT])
{
    if (value >= 10000 && fmod(value, 1024) == 0)
        snprintf(text, PLOT_TICK_TEXT, "%.0fk", value / 1024);
    else
        snprintf(text, PLOT_TICK_TEXT, "%.6g", value);
}

void plot_axis_values(struct plot_axis *axis, const double *values, size_t count, double pixels)
{
    const double least = values[0], most = values[count - 1];
    axis->log = least > 0 && most >= 4 * least;
    if (axis->log) {
        const double room = pow(most / least, value_room);
        axis->low = least / room;
        axis->high = most * room;
    } else {
        const double span = most > least ? most - least : most != 0 ? fabs(most) : 1;
        axis->low = least - value_room * span;
        axis->high = most + value_room * span;
    }
    axis->tick_count = 0;
    char last[PLOT_TICK_TEXT], text[PLOT_TICK_TEXT];
    put_value(most, last);
    const double last_begin = plot_axis_place(axis, most) * pixels - letter * (double)(strlen(last) + 1) / 2;
    double free_from = -INFINITY;
    for (size_t i = 0; i < count && axis->tick_count < PLOT_TICKS; i++) {
        put_value(values[i], text);
        const double at = plot_axis_place(axis, values[i]) * pixels, half = letter * (double)(strlen(text) + 1) / 2;
        const bool is_last = i + 1 == count;
        if (!is_last &&
            (at - half < free_from || (i > 0 && at + half > last_begin) || axis->tick_count == PLOT_TICKS - 1))
            continue;
        axis->ticks[axis->tick_count].at = values[i];
        memcpy(axis->ticks[axis->tick_count].text, text, sizeof text);
        axis->tick_count++;
        free_from = at + half;
    }
}
