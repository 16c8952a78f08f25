#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes and changes results files for the tests of compare and of the exports, with figures that a reader can check.

compare_data.py base                to standard output: four kernels, two sizes each; the samples of each ok point are
                                    11 whole numbers of nanoseconds, 100 to 110 times 1, 2, 3 ...
compare_data.py edit IN OUT CODE    runs CODE over every line of IN: `c` is a context or None, `r` a record or None,
                                    `n` the number of the record from 0; CODE may call scale(r, factor), or drop()
"""
import json
import sys

from report_data import context, record


class Dropped(Exception):
    """This line is left out."""


def drop():
    raise Dropped


def scale(line, factor):
    for key in ("median_ns", "ci95_low_ns", "ci95_high_ns", "min_ns", "mad_ns"):
        line[key] *= factor
    line["samples_ns"] = [factor * sample for sample in line["samples_ns"]]


def base():
    yield context(machine_key="m", flags="-O3 -DNDEBUG")
    number = 0
    for kernel in ("naive", "tiled", "avx2", "avx512"):
        for size in (64, 128):
            number += 1
            samples = [float(100 + (7 * i) % 11) for i in range(11)]
            line = record(number, kernel, (1, 2, size, size, 64), threads=2, seed=1, samples_ns=samples, page_mode="2m",
                          median_ns=105.0, ci95_low_ns=101.0, ci95_high_ns=109.0, min_ns=100.0, mad_ns=3.0,
                          ci_scope="within_process", roof_fraction=0.5)
            scale(line, number)
            yield line


def edit(source, target, code):
    program = compile(code, "CODE", "exec")
    number = 0
    with open(source, encoding="utf-8") as lines, open(target, "w", encoding="utf-8") as out:
        for text in lines:
            line = json.loads(text)
            is_context = line["schema"] == "attnbench.context/1"
            names = {"c": line if is_context else None, "r": None if is_context else line, "n": number, "scale": scale,
                     "drop": drop}
            number += not is_context
            try:
                exec(program, names)  # pylint: disable=exec-used
            except Dropped:
                continue
            print(json.dumps(line), file=out)


if __name__ == "__main__":
    if sys.argv[1] == "base":
        for made in base():
            print(json.dumps(made))
    else:
        edit(*sys.argv[2:])
