"""LayerNorm and RMSNorm for a CPU, each way one pass over memory, in C++."""

import ctypes
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

SOURCE = r"""
#include <cmath>
#include <cstring>
#include <vector>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

// Sixteen numbers, a line of the cache; narrower processors take it in parts.
typedef float Line __attribute__((vector_size(64)));
const long LINE = 16;

inline Line load(const float *from) {
  Line line;
  std::memcpy(&line, from, sizeof(Line));
  return line;
}

// PAST the caches, a line is written without having been read first.
template <bool PAST> inline void store(float *to, Line line) {
#ifdef __AVX512F__
  if (PAST) return _mm512_stream_ps(to, (__m512)line);
#endif
  std::memcpy(to, &line, sizeof(Line));
}

// Four sums side by side: an addition need not wait for the one before it.
template <class Value> inline float mean(long width, Value value) {
  Line sums[4] = {};
  long i = 0;
  for (; i + 4 * LINE <= width; i += 4 * LINE)
    for (long k = 0; k < 4; k++) sums[k] += value(i + k * LINE);
  for (; i < width; i += LINE) sums[0] += value(i);
  Line sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  float total = 0;
  for (long lane = 0; lane < LINE; lane++) total += sum[lane];
  return total / width;
}

template <bool PAST, bool CENTRED>  // CENTRED: LayerNorm, else RMSNorm
void forward(const float *x, const float *gain, const float *bias, float *y,
             long rows, long width, float eps, int threads) {
#pragma omp parallel for num_threads(threads)
  for (long row = 0; row < rows; row++) {
    const float *in = x + row * width;
    float *out = y + row * width;
    auto input = [&](long i) { return load(in + i); };
    float centre = CENTRED ? mean(width, input) : 0;
    float square = mean(width, [&](long i) {
      __builtin_prefetch(in + width + i);  // the next row is on its way
      Line c = load(in + i) - centre;
      return c * c;
    });
    float scale = 1 / std::sqrt(square + eps);
    for (long i = 0; i < width; i += LINE) {  // from the nearest cache
      Line normed = (load(in + i) - centre) * scale * load(gain + i);
      store<PAST>(out + i, CENTRED ? normed + load(bias + i) : normed);
    }
  }
}

template <bool PAST, bool CENTRED>
void backward(const float *dy, const float *x, const float *gain, float *dx,
              float *dgain, float *dbias, long rows, long width, float eps,
              int threads) {
  // Each thread adds up its own rows; the sums are joined at the end.
  std::vector<float> gains(threads * width);
  std::vector<float> biases(CENTRED ? threads * width : 0);
#pragma omp parallel for num_threads(threads)
  for (int thread = 0; thread < threads; thread++) {
    float *to_gain = gains.data() + thread * width;
    float *to_bias = CENTRED ? biases.data() + thread * width : nullptr;
    long first = rows * thread / threads;
    long last = rows * (thread + 1) / threads;
    for (long row = first; row < last; row++) {
      const float *in = x + row * width, *up = dy + row * width;
      float *out = dx + row * width;
      auto input = [&](long i) { return load(in + i); };
      auto through = [&](long i) { return load(up + i) * load(gain + i); };
      float centre = CENTRED ? mean(width, input) : 0;
      float square = mean(width, [&](long i) {
        Line c = load(in + i) - centre;
        return c * c;
      });
      float scale = 1 / std::sqrt(square + eps);
      float along = scale * scale * mean(width, [&](long i) {
        return through(i) * (load(in + i) - centre);
      });
      float shared = CENTRED ? mean(width, through) : 0;
      for (long i = 0; i < width; i += LINE) {
        __builtin_prefetch(in + width + i);
        __builtin_prefetch(up + width + i);
        Line above = load(up + i), c = load(in + i) - centre;
        store<PAST>(out + i, (through(i) - shared - c * along) * scale);
        store<false>(to_gain + i, load(to_gain + i) + above * c * scale);
        if (CENTRED) store<false>(to_bias + i, load(to_bias + i) + above);
      }
    }
  }
  for (long i = 0; i < width; i++) {
    dgain[i] = 0;
    if (CENTRED) dbias[i] = 0;
    for (int thread = 0; thread < threads; thread++) {
      dgain[i] += gains[thread * width + i];
      if (CENTRED) dbias[i] += biases[thread * width + i];
    }
  }
}

template <bool PAST>
void stream(const float *a, const float *b, float *y, long rows, long width,
            int threads) {
#pragma omp parallel for num_threads(threads)
  for (long row = 0; row < rows; row++)
    for (long i = row * width; i < (row + 1) * width; i += LINE)
      store<PAST>(y + i, b ? load(a + i) + load(b + i) : load(a + i));
}

extern "C" {
void norm_forward(const float *x, const float *gain, const float *bias,
                  float *y, long rows, long width, float eps, int threads,
                  bool past) {
  auto run = bias ? (past ? forward<true, true> : forward<false, true>)
                  : (past ? forward<true, false> : forward<false, false>);
  run(x, gain, bias, y, rows, width, eps, threads);
}
void norm_backward(const float *dy, const float *x, const float *gain,
                   float *dx, float *dgain, float *dbias, long rows, long width,
                   float eps, int threads, bool past) {
  auto run = dbias ? (past ? backward<true, true> : backward<false, true>)
                   : (past ? backward<true, false> : backward<false, false>);
  run(dy, x, gain, dx, dgain, dbias, rows, width, eps, threads);
}
void copy_or_add(const float *a, const float *b, float *y, long rows,
                 long width, int threads, bool past) {
  (past ? stream<true> : stream<false>)(a, b, y, rows, width, threads);
}
}
"""


@cache
def library() -> ctypes.CDLL:
    """The compiled source. RuntimeError where there is no C++ compiler."""
    compiler = (
        os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    )
    if not compiler:
        raise RuntimeError("no C++ compiler found: install g++, or set CXX")
    with tempfile.TemporaryDirectory() as folder:
        source, built = Path(folder, "norms.cpp"), Path(folder, "norms.so")
        source.write_text(SOURCE)
        flags = ["-O3", "-march=native", "-fopenmp", "-shared", "-fPIC"]
        done = subprocess.run(
            [compiler, *flags, source, "-o", built],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"{compiler} failed: {done.stderr.strip()}")
        found = ctypes.CDLL(built)
    sizes = [ctypes.c_long, ctypes.c_long]
    end = [ctypes.c_int, ctypes.c_bool]
    found.norm_forward.argtypes = (
        [ctypes.c_void_p] * 4 + sizes + [ctypes.c_float] + end
    )
    found.norm_backward.argtypes = (
        [ctypes.c_void_p] * 6 + sizes + [ctypes.c_float] + end
    )
    found.copy_or_add.argtypes = [ctypes.c_void_p] * 3 + sizes + end
    return found


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


class _FusedNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gain, bias, eps, past):
        x, gain = x.contiguous(), gain.contiguous()
        bias = None if bias is None else bias.contiguous()
        y = torch.empty_like(x)
        width = x.shape[-1]
        ctx.save_for_backward(x, gain)
        ctx.set, ctx.centred = (
            (x.numel() // width, width, eps),
            bias is not None,
        )
        ctx.past = past
        library().norm_forward(
            *map(_address, (x, gain, bias, y)),
            *ctx.set, torch.get_num_threads(), past and y.data_ptr() % 64 == 0,
        )  # fmt: skip
        return y

    @staticmethod
    def backward(ctx, dy):
        x, gain = ctx.saved_tensors
        dy, dx = dy.contiguous(), torch.empty_like(x)
        dgain = torch.empty_like(gain)
        dbias = torch.empty_like(gain) if ctx.centred else None
        library().norm_backward(
            *map(_address, (dy, x, gain, dx, dgain, dbias)),
            *ctx.set, torch.get_num_threads(),
            ctx.past and dx.data_ptr() % 64 == 0,
        )  # fmt: skip
        return dx, dgain, dbias, None, None


def fused_norm(
    x: Tensor,
    gain: Tensor,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    past: bool = False,
) -> Tensor:
    """LayerNorm, or RMSNorm without ``bias``; one pass over memory each way.

    ``x`` is (..., d) in float32 on a CPU, d a multiple of 16, gain and bias
    are (d,); the result is like x. ``past`` writes the result past the caches,
    where the processor can. ValueError for anything else.
    """
    width = x.shape[-1]
    given = [t for t in (x, gain, bias) if t is not None]
    if any(t.dtype != torch.float32 or t.device.type != "cpu" for t in given):
        raise ValueError("fused_norm takes float32 tensors on a CPU")
    if width % 16 or width == 0:
        raise ValueError(f"the width must be a multiple of 16, not {width}")
    if any(t.shape != (width,) for t in given[1:]):
        raise ValueError(f"gain and bias must have the shape ({width},)")
    return _FusedNorm.apply(x, gain, bias, eps, past)


def copy_or_add(
    y: Tensor, a: Tensor, b: Tensor | None = None, past: bool = False
):
    """y = a, or a + b: the ceilings of a forward and a backward pass.

    All are contiguous, (rows, d) in float32, d a multiple of 16; y begins at a
    multiple of 64 bytes, as torch allocates it.
    """
    rows, width = a.shape
    library().copy_or_add(
        *map(_address, (a, b, y)), rows, width, torch.get_num_threads(), past
    )
