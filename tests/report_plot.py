# SPDX-License-Identifier: Apache-2.0
"""Pages with plots: makes results files of any size, and looks at what the report drew of them.

  report_plot.py make COUNT [MACHINE]   a results file of COUNT made-up points of a large machine, to stdout
  report_plot.py check PAGE             every inline SVG of the page; tells "SECTION FIGURES MARKS" a line
"""
import json
import re
import sys
import xml.etree.ElementTree as tree

KERNELS = {"naive": 0.03, "tiled": 0.3, "avx2": 0.8, "avx512": 0.9, "openblas": 0.5, "onednn": 0.7, "mine": 0.95}
PLACES = {"core:0": 1, "smt": 2, "l3:0": 8, "numa:0": 32, "socket:0": 64, "compact": 128, "all": 256}
SIZES = [(1, 12, s, 64) for s in (64, 128, 256, 512, 1024, 2048, 4096)]
SIZES += [(b, 12, 512, 64) for b in (2, 4, 8, 16)]
SIZES += [(1, 12, 512, d) for d in (32, 80, 96, 128)]
SIZES += [(1, h, 512, 64) for h in (2, 4, 8, 32)]


def context(machine):
    cores = [[c, c + 128] for c in range(128)]
    sets = lambda size: [{"cpus": sum(cores[i:i + size], [])} for i in range(0, 128, size)]
    return {"schema": "attnbench.context/1", "run_id": machine, "time_utc": "2026-01-01T00:00:00Z",
            "command": ["attnbench", "run"], "config": "made up", "seed": 1, "host": machine, "machine_key": machine,
            "cpu_model": "made up", "isa": {}, "memory_bytes": 1 << 30, "compiler": "cc", "flags": "-O3",
            "build_commit": "abc", "omp": {}, "libraries": {},
            "topology": {"packages": 2, "numa_nodes": 4, "l3_domains": 16, "cores": 128, "pus": 256,
                         "allowed_pus": list(range(256)), "core_cpus": cores, "sockets": sets(64), "numa": sets(32),
                         "l3": sets(8)}}


def point(index, machine):
    rest, kernel = divmod(index, len(KERNELS))
    rest, place = divmod(rest, len(PLACES))
    rest, size = divmod(rest, len(SIZES))
    rest, schedule = divmod(rest, 2)
    rest, causal = divmod(rest, 2)
    kernel, place, (B, H, S, D) = list(KERNELS)[kernel], list(PLACES)[place], SIZES[size]
    threads = PLACES[place]
    flops, bytes_min = 4.0 * B * H * S * S * D, 16.0 * B * H * S * D
    compute, memory = 100.0 * threads, min(20.0 * threads, 300) * flops / bytes_min
    share = KERNELS[kernel] * (1 - 0.1 * schedule) * (1 - (index * 2654435761 % 1000) / 5000)
    gflops = min(compute, memory) * share
    ns = flops / gflops
    return {"schema": "attnbench.result/1", "run_id": machine, "point_id": "%016x" % index, "status": "ok",
            "reason": None, "rule": "scaled_dot_product", "kernel": kernel,
            "source": "plugin:mine.so" if kernel == "mine" else "builtin", "schedule": ("bhq", "bh")[schedule],
            "dtype": "f32", "layout": "BHSD", "B": B, "H": H, "H_kv": H, "S_q": S, "S_kv": S, "D": D, "D_v": D,
            "scale": D ** -0.5, "causal": ("none", "bottom_right")[causal], "fill": "normal" if not rest else "f%d" % rest,
            "threads": threads, "placement": place, "cpus": list(range(threads)), "cache": "warm",
            "flops_useful": flops, "bytes_min": bytes_min, "median_ns": ns, "ci95_low_ns": 0.98 * ns,
            "ci95_high_ns": 1.03 * ns, "min_ns": ns, "samples_ns": [ns], "gflops": gflops, "gb_per_s": bytes_min / ns,
            "tokens_per_s": 1e9 * B * S / ns, "roof_bound": "compute" if compute < memory else "dram",
            "roof_gflops": min(compute, memory), "roof_fraction": share, "isa_roof_gflops": compute,
            "verified": "full", "noise": {"quality": "noisy" if index % 13 == 0 else "clean"}}


def make(count, machine="big"):
    print(json.dumps(context(machine)))
    for index in range(count):
        print(json.dumps(point(index, machine), separators=(",", ":")))


DRAWN = {"svg", "title", "desc", "g", "path", "text", "tspan", "polygon", "polyline", "line", "circle", "ellipse"}
PAINT = re.compile(r"none|currentColor|var\(--(paper|ink|faint|line|good|bad|warn|s[0-7])\)")


def check_svg(text, ids):
    """One inline SVG. Returns its marks: shapes that say what they are."""
    svg = tree.fromstring(text)  # no namespace inside HTML, and no entity that XML does not know
    left, top, width, height = map(float, svg.get("viewBox").split())
    assert "width" not in svg.attrib or svg.get("aria-hidden") == "true", "a fixed width"
    marks = 0
    for element in svg.iter():
        assert element.tag in DRAWN, "<%s>" % element.tag
        for name, value in element.attrib.items():
            assert not name.startswith("on") and name not in ("href", "style"), name
            assert "url(" not in value and "://" not in value, value
            if name in ("fill", "stroke"):
                assert PAINT.fullmatch(value), "%s=%s follows no theme" % (name, value)
            if name == "id":
                assert value not in ids, "id %s twice" % value
                ids.add(value)
        if element.get("data-r") is not None or (element.tag == "path" and element.find("title") is not None):
            marks += 1
            x, y = map(float, re.match(r"M(-?[\d.]+) (-?[\d.]+)", element.get("d")).groups())
            assert left < x < left + width and top < y < top + height, "a mark outside: %g %g" % (x, y)
            assert element.get("data-r") is not None or len(element.find("title").text) > 20
    if svg.get("aria-hidden") != "true":
        assert svg.get("role") == "img"
        for name in svg.get("aria-labelledby").split():
            assert name in ids, name
        assert svg.find("title").text and svg.find("desc").text
        assert marks > 0 and svg.findall(".//text"), "an empty figure"
    return marks


def check(path):
    page = open(path, encoding="utf-8").read()
    ids, size = set(), 0
    for section in re.findall(r'<section id="(\w+)".*?</section>', page, re.S):
        body = re.search(r'<section id="%s".*?</section>' % section, page, re.S).group(0)
        plots = re.findall(r'<figure class="plot">.*?</figure>', body, re.S)
        svgs = [svg for plot in plots for svg in re.findall(r"<svg.*?</svg>", plot, re.S)]
        size += sum(map(len, plots)) + sum(map(len, re.findall(r'<details class="data">.*?</details>', body, re.S)))
        marks = [check_svg(svg, ids) for svg in svgs]
        if plots:
            print(section, len([svg for svg in svgs if "aria-hidden" not in svg.split(">")[0]]), sum(marks))
    print("bytes", size)


if __name__ == "__main__":
    {"make": lambda count, *machine: make(int(count), *machine), "check": check}[sys.argv[1]](*sys.argv[2:])
