// SPDX-License-Identifier: Apache-2.0
//
// mine_rust: the same in Rust. It has no attn.h, so what it needs of that file stands here once more: ABI 3. The host
// checks that number and the size of `Kernel` when it loads the file. A panic would end the process of the kernel, no other.
use std::ffi::{c_char, c_void};

const ABI: u32 = 3;
const SCALED_DOT_PRODUCT: u64 = 1 << 0;
const F32: u64 = 1 << 0;

#[repr(C)]
pub struct Tensor {
    data: *mut c_void,
    size: [i64; 4],
    stride: [i64; 4],
}

#[repr(C)]
pub struct Problem {
    struct_size: u32,
    what: [u32; 3], // rule, dtype, flags
    batch: i64,
    heads: i64,
    key_heads: i64,
    queries: i64,
    keys: i64,
    d: i64,
    d_v: i64,
    of_other_rules: [i64; 6],
    left: i64,
    right: i64,
    scale: f32,
    softcap: f32,
    kv_len: *const i64,
    diag: *const i64,
}

#[repr(C)]
pub struct Args {
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    weights: Tensor,
    bias: Tensor,
    mask: Tensor, // what follows is not used here
}

#[repr(C)]
pub struct Span {
    b0: i64,
    b1: i64,
    h0: i64,
    h1: i64,
    q0: i64,
    q1: i64, // k0, k1 and split follow
}

type Run = extern "C" fn(*const Problem, *const Args, *const Span, i32, *mut c_void, *mut c_void) -> i32;

#[repr(C)]
pub struct Kernel {
    abi: u32,
    struct_size: u32,
    name: *const c_char,
    summary: *const c_char,
    isa: u64,
    rules: u64,
    dtypes: u64,
    caps: u64,
    refuse: Option<extern "C" fn(*const Problem) -> *const c_char>,
    open: *const c_void,
    close: *const c_void,
    plan: *const c_void,
    run: Option<Run>,
    describe: *const c_void,
}
unsafe impl Sync for Kernel {}

impl Tensor {
    unsafe fn row(&self, b: i64, h: i64, i: i64, length: i64) -> &mut [f32] {
        let start = b * self.stride[0] + h * self.stride[1] + i * self.stride[2];
        std::slice::from_raw_parts_mut((self.data as *mut f32).offset(start as isize), length as usize)
    }

    /// One element of a tensor that may be absent, and that may repeat rows and columns.
    unsafe fn element<T: Copy>(&self, b: i64, h: i64, i: i64, j: i64) -> Option<T> {
        let at = b * self.stride[0] + h * self.stride[1] + i * self.stride[2] + j * self.stride[3];
        (!self.data.is_null()).then(|| *(self.data as *const T).offset(at as isize))
    }
}

unsafe fn allowed(p: &Problem, a: &Args, b: i64, h: i64, i: i64, j: i64) -> bool {
    let of_batch = |list: *const i64, otherwise| if list.is_null() { otherwise } else { *list.offset(b as isize) };
    let distance = j - i - of_batch(p.diag, 0);
    distance <= p.right
        && distance > -p.left
        && j < of_batch(p.kv_len, p.keys)
        && a.mask.element::<u8>(b, h, i, j) != Some(0)
        && a.bias.element::<f32>(b, h, i, j) != Some(f32::NEG_INFINITY)
}

unsafe fn attend(p: &Problem, a: &Args, b: i64, h: i64, i: i64) {
    let key_head = h / (p.heads / p.key_heads);
    let q = a.q.row(b, h, i, p.d);
    let out = a.out.row(b, h, i, p.d_v);
    let (mut max, mut sum) = (f32::NEG_INFINITY, 0f32);
    out.fill(0.0);
    for j in (0..p.keys).filter(|&j| allowed(p, a, b, h, i, j)) {
        let product: f32 = q.iter().zip(a.k.row(b, key_head, j, p.d)).map(|(x, y)| x * *y).sum();
        let score = p.scale * product + a.bias.element::<f32>(b, h, i, j).unwrap_or(0.0);
        let old = max;
        max = max.max(score);
        let shrink = if old == max { 1.0 } else { (old - max).exp() };
        let weight = (score - max).exp();
        sum = sum * shrink + weight;
        for (o, v) in out.iter_mut().zip(a.v.row(b, key_head, j, p.d_v)) {
            *o = *o * shrink + weight * *v;
        }
    }
    if sum != 0.0 {
        out.iter_mut().for_each(|o| *o /= sum);
    }
}

extern "C" fn run(p: *const Problem, a: *const Args, s: *const Span, _: i32, _: *mut c_void, _: *mut c_void) -> i32 {
    unsafe {
        let (p, a, s) = (&*p, &*a, &*s);
        for b in s.b0..s.b1 {
            for h in s.h0..s.h1 {
                for i in s.q0..s.q1 {
                    attend(p, a, b, h, i);
                }
            }
        }
    }
    0
}

extern "C" fn refuse(p: *const Problem) -> *const c_char {
    if unsafe { (*p).softcap } > 0.0 {
        return "mine_rust has no softcap\0".as_ptr() as *const c_char;
    }
    std::ptr::null()
}

static MINE: Kernel = Kernel {
    abi: ABI,
    struct_size: std::mem::size_of::<Kernel>() as u32,
    name: "mine_rust\0".as_ptr() as *const c_char,
    summary: "online softmax, in Rust\0".as_ptr() as *const c_char,
    isa: 0,
    rules: SCALED_DOT_PRODUCT,
    dtypes: F32,
    caps: 0,
    refuse: Some(refuse),
    open: std::ptr::null(),
    close: std::ptr::null(),
    plan: std::ptr::null(),
    run: Some(run),
    describe: std::ptr::null(),
};

pub struct Table([*const Kernel; 2]);
unsafe impl Sync for Table {}
static TABLE: Table = Table([&MINE, std::ptr::null()]);

#[no_mangle]
pub extern "C" fn attn_kernels(abi: *mut u32) -> *const *const Kernel {
    unsafe { *abi = ABI };
    TABLE.0.as_ptr()
}
