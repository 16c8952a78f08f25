# SPDX-License-Identifier: Apache-2.0
"""Problems and tensors of a Python peer: the shared memory, and private copies of it on huge pages.

Tensors come to a library as contiguous numpy arrays in the order that it wants (a permutation of B, H and S, which is
unclocked); bf16 is uint16. What a problem forbids (lengths, causal line, window, mask) becomes one array of allowed
pairs, unless the library says it in words of its own.
"""
import functools
import mmap

import numpy

DTYPES = {"f32": numpy.float32, "bf16": numpy.uint16, "f16": numpy.float16, "u8": numpy.uint8}
NAN = {"f32": numpy.nan, "bf16": 0x7FC0, "f16": numpy.nan}
HUGE_PAGE = 2 << 20


class Problem:
    """What is to be computed. left and right are None where open; kv_len and diag are lists, one entry a batch entry."""

    def __init__(self, description, tensors):
        for name in ("B", "H", "H_kv", "S_q", "S_kv", "D", "D_v", "dtype", "scale", "softcap", "left", "right"):
            setattr(self, name, description[name])
        self.kv_len = description["kv_len"] or [self.S_kv] * self.B
        self.diag = description["diag"] or [0] * self.B
        self.alias = description["alias"]
        self.tensors = tensors
        self.group = self.H // self.H_kv if self.H_kv else 1
        self.has_mask, self.has_bias = "mask" in tensors, "bias" in tensors
        self.empty = 0 in (self.B, self.H, self.S_q, self.S_kv, self.D_v)

    @property
    def large_scale(self):
        """The scores of ordinary inputs are so large that one rounded to 16 bits makes a weight of another size."""
        return abs(self.scale) * self.D ** 0.5 > 4

    def _bounds(self, b):
        """First and last key that query 0 may see, by the band alone; None: open."""
        first = None if self.left is None else self.diag[b] - self.left + 1
        last = None if self.right is None else self.diag[b] + self.right
        return first, last

    @property
    def full(self):
        """Every query may see every key, and there is no bias."""
        if self.has_mask or self.has_bias or any(length < self.S_kv for length in self.kv_len):
            return False
        for b in range(self.B):
            first, last = self._bounds(b)
            if first is not None and first + self.S_q - 1 > 0 or last is not None and last < self.S_kv - 1:
                return False
        return True

    @property
    def top_left(self):
        """Query i sees the keys up to i, and that is all there is to it."""
        return self._causal(0)

    @property
    def bottom_right(self):
        """Query i sees the keys up to i + S_kv - S_q, and that is all there is to it."""
        return self._causal(self.S_kv - self.S_q)

    def _causal(self, offset):
        open_left = self.left is None or all(self._bounds(b)[0] + self.S_q - 1 <= 0 for b in range(self.B))
        return (not self.has_mask and not self.has_bias and open_left and self.right is not None and
                all(length == self.S_kv for length in self.kv_len) and
                all(diag + self.right == offset for diag in self.diag))

    @functools.cached_property
    def band(self):
        """Boolean [B or 1][1][S_q or 1][S_kv], true where lengths, causal line and window allow; None: everywhere."""
        same = len(set(zip(self.kv_len, self.diag))) <= 1
        key = numpy.arange(self.S_kv)
        query = numpy.arange(self.S_q)[:, None]
        bands = []
        for b in range(1 if same else self.B):
            first, last = self._bounds(b)
            allowed = numpy.broadcast_to(key < self.kv_len[b], (1, self.S_kv))
            if first is not None:
                allowed = allowed & (key >= query + first)
            if last is not None:
                allowed = allowed & (key <= query + last)
            bands.append(allowed)
        band = numpy.stack(numpy.broadcast_arrays(*bands))[:, None]
        return None if band.all() else band


class SharedMemory:
    def __init__(self, description):
        with open(description["path"], "r+b") as file:
            self.bytes = mmap.mmap(file.fileno(), max(1, description["bytes"]))
        self.tensors = description["tensors"]

    def view(self, name):
        """The tensor as it lies there: [B][H][S][D], any strides."""
        told = self.tensors[name]
        dtype = numpy.dtype(DTYPES[told["dtype"]])
        if 0 in told["shape"]:
            return numpy.empty(told["shape"], dtype)
        return numpy.ndarray(told["shape"], dtype, self.bytes, told["offset"],
                             [stride * dtype.itemsize for stride in told["strides"]])

    def plain(self, name):
        """The same without repetitions: a dimension of stride 0 has size 1."""
        view = self.view(name)
        return view[tuple(slice(0, 1) if stride == 0 and size > 1 else slice(None)
                          for size, stride in zip(view.shape, view.strides))]


class _Arena:
    """Anonymous memory on huge pages, where there are any."""

    def __init__(self, size):
        whole = -(-size // HUGE_PAGE) * HUGE_PAGE  # a last page in part would be an ordinary one
        self.bytes = mmap.mmap(-1, whole + HUGE_PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.address = numpy.frombuffer(self.bytes, numpy.uint8).ctypes.data
        self.next = -self.address % HUGE_PAGE
        try:
            self.bytes.madvise(mmap.MADV_HUGEPAGE)
        except (OSError, AttributeError):
            pass  # an operating system without them: ordinary pages do

    def take(self, shape, dtype):
        array = numpy.ndarray(shape, dtype, self.bytes, self.next)
        self.next += room(shape, dtype)
        return array


def room(shape, dtype):
    """Bytes that a tensor takes in an arena, a cache line's alignment included."""
    size = numpy.dtype(dtype).itemsize
    for extent in shape:
        size *= extent
    return -(-size // 64) * 64 + 64


def page_mode(copies):
    """Pages of the private copies as the kernel tells: "2m", "4k" or "mixed"; None where it does not."""
    ranges = [(copy.arena.address, copy.arena.address + len(copy.arena.bytes)) for copy in copies]
    resident = huge = 0
    ours = False
    try:
        with open("/proc/self/smaps", encoding="utf-8") as file:
            for line in file:
                name, _, rest = line.partition(" ")
                if not name.endswith(":"):
                    start, end = (int(number, 16) for number in name.split("-"))
                    ours = any(first < end and start < last for first, last in ranges)
                elif ours and name == "Rss:":
                    resident += int(rest.split()[0])
                elif ours and name in ("AnonHugePages:", "Private_Hugetlb:"):
                    huge += int(rest.split()[0])
    except OSError:
        return None
    if not resident:
        return None
    return "4k" if huge == 0 else "2m" if huge >= resident else "mixed"


class Copy:
    """One private copy of a problem's tensors, as a library gets it: q, k, v and out in the wanted order; `allowed`,
    boolean, true where a query may see a key, and `bias`, both [B][H][S_q][S_kv] with 1 for repeated dimensions, None
    where there is nothing to say; `keyless`, the indices (b, h, i) of queries that see no key and whose output is zero,
    None where each sees one."""

    def __init__(self, problem, memory, orders):
        self.problem, self.memory = problem, memory
        self.orders = {name: ["BHSD".index(axis) for axis in orders.get(name, "BHSD")] for name in ("q", "k", "v", "out")}
        self.band = problem.band
        self.allowed = self.bias = self.keyless = None
        restricted = self.band is not None or problem.has_mask or problem.has_bias
        dtype = DTYPES[problem.dtype]
        shapes, owners = {}, {}
        for name, order in self.orders.items():
            shapes[name] = tuple(memory.view(name).shape[axis] for axis in order)
            # One buffer under two names stays one, but where unseen keys are cleared: a query in the same place is not.
            own = name == "out" or restricted and name == "q"
            place = name if own else (memory.tensors[name]["offset"], shapes[name], tuple(order))
            owners.setdefault(place, []).append(name)
        self.arena = arena = _Arena(sum(room(shapes[names[0]], dtype) for names in owners.values()))
        for names in owners.values():
            array = arena.take(shapes[names[0]], dtype)
            for name in names:
                setattr(self, name, array)
        self.poison()

    def logical(self, name):
        """The private tensor as [B][H][S][D]."""
        order = self.orders[name]
        return getattr(self, name).transpose([order.index(axis) for axis in range(4)])

    def load(self):
        for name in ("q", "k", "v"):
            numpy.copyto(self.logical(name), self.memory.view(name))
        p, allowed = self.problem, self.band
        if p.has_mask:
            mask = self.memory.plain("mask") != 0
            allowed = mask if allowed is None else allowed & mask
        if p.has_bias:
            self.bias = self.memory.plain("bias").copy()
            finite = self.bias > -numpy.inf
            if not finite.all():
                allowed = finite if allowed is None else allowed & finite
        self.allowed, self.keyless = allowed, None
        if allowed is not None:
            self._clear_unseen()
            keyless = ~allowed.any(axis=3)
            if keyless.any():
                self.keyless = numpy.nonzero(numpy.broadcast_to(keyless, (p.B, p.H, p.S_q)))

    def _clear_unseen(self):
        """What no query sees may hold NaN, and libraries multiply it by a weight of zero."""
        p = self.problem
        seen = self.allowed.any(axis=2)
        if seen.shape[1] > 1:
            seen = seen.reshape(seen.shape[0], p.H_kv, p.group, p.S_kv).any(axis=2)
        unseen = ~numpy.broadcast_to(seen, (p.B, p.H_kv, p.S_kv))
        if unseen.any():
            self.logical("k")[unseen] = 0
            self.logical("v")[unseen] = 0

    def additive(self):
        """bias, and -inf where a query may not see a key; f32, with 1 for repeated dimensions; None: nothing to add."""
        if self.allowed is None:
            return self.bias
        return numpy.where(self.allowed, numpy.float32(0) if self.bias is None else self.bias, numpy.float32(-numpy.inf))

    def poison(self):
        self.out.fill(NAN[self.problem.dtype])

    def write_back(self):
        numpy.copyto(self.memory.view("out"), self.logical("out"))
