// Float32 products by AMX-BF16: TDPBF16PS adds 32 products of bfloat16 numbers to each of 16 x 16 float32 sums.
//
// A float32 number has 24 significant bits, a bfloat16 number 8: x = x1 + x2 + x3, each rounded from what the ones
// before leave, is exact. Of the nine products of terms the six largest are summed, x1 y1, x1 y2, x2 y1, x2 y2, x1 y3,
// x3 y1; the other three are below 2^-23 |x y| together, about what one rounding of float32 costs (Henry, Tang,
// Heinecke, Leveraging the bfloat16 artificial intelligence datatype for higher-precision computations, ARITH 2019).
// Six of them take less time than one float32 product does in vector registers. An instruction adds its products up
// before it rounds into the sum, and sums run over 128 of the depth at a time, so results are nearer to exact ones than
// a plain float32 loop's.
//
// The instruction takes subnormal terms and results as zero: numbers below 2^-110 lose digits, those below 2^-126 count
// as zero. The sum of an element has an order that depends on the depth alone, not on where c is cut.
#include "kernels/cpu/TileGemm.h"

#include <algorithm>

#if defined(__x86_64__) && defined(__linux__)
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512dq,avx512vl"))),          \
                             apply_to = function)
#else
#pragma GCC diagnostic ignored "-Wuninitialized" // of GCC 12's own intrinsics, whose unused lanes have no value
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC push_options
#pragma GCC target("amx-tile,amx-bf16,avx512f,avx512bw,avx512dq,avx512vl")
#endif

namespace ds::kernels {

namespace {

constexpr int64_t tileRows = 16;                     // of a tile register; also its float32 columns
constexpr int64_t tileNumbers = 512;                 // bfloat16 numbers of a tile: 16 rows of 16 pairs
constexpr int64_t stepDepth = 32;                    // of the depth in one instruction: 16 pairs
constexpr int64_t panel = TileBlock::panel;          // two tiles
constexpr int64_t terms = TileBlock::terms;          // of a float32 number
constexpr int64_t termNumbers = 2 * tileNumbers;     // one term of a panel and step
constexpr int64_t stepNumbers = terms * termNumbers; // all of a panel and step

constexpr int64_t blockDepth = TileBlock::depth; // of the depth that is packed at a time
static_assert(panel == 2 * tileRows);

/// A block's memory, each part at a multiple of 64.
struct Workspace {
  Workspace(TileBlock block, std::byte *memory) : block(block) {
    a = reinterpret_cast<uint16_t *>(memory);
    b = reinterpret_cast<uint16_t *>(memory + block.packedBytes(block.rows));
    sums = reinterpret_cast<float *>(memory + block.packedBytes(block.rows) + block.packedBytes(block.cols));
    products = sums + block.rows * block.cols;
  }

  TileBlock block;
  uint16_t *a, *b; // packed operands
  float *sums;     // panel x panel pieces, each four tiles
  float *products; // two panels of one blockDepth, on their way into `sums`
};

/// Tile registers for as long as it lives.
class TileRegisters {
public:
  TileRegisters() { configureTiles(); }
  ~TileRegisters() { releaseTiles(); }
  TileRegisters(const TileRegisters &) = delete;
  TileRegisters &operator=(const TileRegisters &) = delete;
};

/// The nearest bfloat16 number, as float32; ties go away from zero.
inline __m512 toBFloat16(__m512 x) {
  const __m512i bits = _mm512_add_epi32(_mm512_castps_si512(x), _mm512_set1_epi32(0x8000));
  return _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32(int(0xffff0000))));
}

/// 16 pairs of bfloat16 numbers, `first` in the low halves.
inline void storePairs(uint16_t *to, __m512 first, __m512 second) {
  constexpr int maskedOr = 0xea; // (a & b) | c
  _mm512_store_si512(to, _mm512_ternarylogic_epi32(_mm512_castps_si512(second), _mm512_set1_epi32(int(0xffff0000)),
                                                   _mm512_srli_epi32(_mm512_castps_si512(first), 16), maskedOr));
}

/// Writes one row of the tiles of all three terms; `check` turns into NaN where a number has no such terms.
inline void storeTerms(uint16_t *to, __m512 first, __m512 second, __m512 &check) {
  for (int64_t term = 0; term < terms - 1; ++term) {
    const __m512 x = toBFloat16(first), y = toBFloat16(second);
    storePairs(to + term * termNumbers, x, y);
    first = _mm512_sub_ps(first, x);
    second = _mm512_sub_ps(second, y);
  }
  storePairs(to + (terms - 1) * termNumbers, first, second); // eight bits are left
  check = _mm512_fmadd_ps(first, _mm512_setzero_ps(), check);
  check = _mm512_fmadd_ps(second, _mm512_setzero_ps(), check);
}

inline void transpose(__m512 (&rows)[16]) {
  __m512 pairs[16], quads[16];
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
  }
  const auto wide = [&](int i) { return _mm512_castps_pd(pairs[i]); };
  for (int i = 0; i < 16; i += 4)
    for (int half = 0; half < 2; ++half) {
      quads[i + 2 * half] = _mm512_castpd_ps(_mm512_unpacklo_pd(wide(i + half), wide(i + half + 2)));
      quads[i + 2 * half + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(wide(i + half), wide(i + half + 2)));
    }
  // quads[4 q + c] holds columns c, c + 4, c + 8, c + 12 of rows 4 q to 4 q + 3, 128 bits each.
  constexpr int even = 0x88, odd = 0xdd;
  for (int c = 0; c < 4; ++c) {
    const __m512 upperEven = _mm512_shuffle_f32x4(quads[c], quads[c + 4], even),
                 upperOdd = _mm512_shuffle_f32x4(quads[c], quads[c + 4], odd),
                 lowerEven = _mm512_shuffle_f32x4(quads[c + 8], quads[c + 12], even),
                 lowerOdd = _mm512_shuffle_f32x4(quads[c + 8], quads[c + 12], odd);
    rows[c] = _mm512_shuffle_f32x4(upperEven, lowerEven, even);
    rows[c + 8] = _mm512_shuffle_f32x4(upperEven, lowerEven, odd);
    rows[c + 4] = _mm512_shuffle_f32x4(upperOdd, lowerOdd, even);
    rows[c + 12] = _mm512_shuffle_f32x4(upperOdd, lowerOdd, odd);
  }
}

/// The first `count` of 16 lanes, none where it is negative.
inline __mmask16 lanes(int64_t count) { return count >= 16 ? 0xffff : count <= 0 ? 0 : __mmask16((1 << count) - 1); }

/// An operand as stored: rows along the depth, or one row for each step of the depth.
struct Stored {
  const float *data;
  int64_t stride;
};

/// The tiles of 16 of an operand's `width` and a step of its `depth`: of a left operand a row for each of its rows, of
/// a right one a row for each pair of the depth. Numbers k and k + 16 of a step make a pair; both operands agree on
/// that.
template <bool Left, bool AlongDepth>
inline void packTiles(Stored from, int64_t width, int64_t depth, uint16_t *to, __m512 &check) {
  __m512 first[16], second[16];
  for (int64_t row = 0; row < tileRows; ++row) {
    const int64_t rowOfSecond = AlongDepth ? row : row + 16;
    const int64_t rows = AlongDepth ? width : depth;
    const float *at = from.data + std::min(row, rows - 1) * from.stride,
                *atSecond = AlongDepth ? at + 16 : from.data + std::min(rowOfSecond, rows - 1) * from.stride;
    const __mmask16 mask = lanes(row < rows ? (AlongDepth ? depth : width) : 0),
                    maskOfSecond = lanes(rowOfSecond < rows ? (AlongDepth ? depth - 16 : width) : 0);
    first[row] = _mm512_maskz_loadu_ps(mask, at);
    second[row] = _mm512_maskz_loadu_ps(maskOfSecond, atSecond);
    if constexpr (Left == AlongDepth)
      storeTerms(to + row * stepDepth, first[row], second[row], check);
  }
  if constexpr (Left == AlongDepth)
    return;
  transpose(first);
  transpose(second);
  for (int64_t row = 0; row < tileRows; ++row)
    storeTerms(to + row * stepDepth, first[row], second[row], check);
}

/// Panels below each other, each step after step, each term after term. False where a number has no three terms.
template <bool Left, bool AlongDepth> bool pack(Stored from, int64_t width, int64_t depth, uint16_t *to) {
  __m512 check = _mm512_setzero_ps();
  for (int64_t w = 0; w < width; w += panel)
    for (int64_t k = 0; k < depth; k += stepDepth, to += stepNumbers)
      for (int64_t half = w; half < w + panel; half += tileRows) {
        const float *corner = from.data + (AlongDepth ? half * from.stride + k : k * from.stride + half);
        uint16_t *tiles = to + (half - w) / tileRows * tileNumbers;
        if (half < width)
          packTiles<Left, AlongDepth>({corner, from.stride}, width - half, depth - k, tiles, check);
        for (int64_t term = 0; term < terms && half >= width; ++term)
          std::fill_n(tiles + term * termNumbers, tileNumbers, uint16_t(0));
      }
  return _mm512_cmp_ps_mask(check, check, _CMP_UNORD_Q) == 0;
}

template <bool Left> bool pack(Stored from, bool alongDepth, int64_t width, int64_t depth, uint16_t *to) {
  return alongDepth ? pack<Left, true>(from, width, depth, to) : pack<Left, false>(from, width, depth, to);
}

constexpr long tileStride = 64; // bytes between rows of a packed tile

/// Products of a panel that are still to be added to its sums.
struct Pending {
  const float *products = nullptr;
  float *sums = nullptr;

  /// One of `parts` parts. Between two steps of other panels this costs next to nothing: the tile unit is busy then.
  void add(int64_t part, int64_t parts) const {
    constexpr int64_t vectors = panel * panel / 16;
    for (int64_t i = vectors * part / parts * 16; i < vectors * (part + 1) / parts * 16; i += 16)
      _mm512_store_ps(sums + i, _mm512_add_ps(_mm512_load_ps(sums + i), _mm512_load_ps(products + i)));
  }
};

/// products [panel x panel, as four tiles] = a's panel times b's, over `steps` of the depth; the smallest terms first.
void multiplyPanels(const uint16_t *a, const uint16_t *b, int64_t steps, float *products, Pending pending) {
  const auto left = [&](int64_t term) {
    _tile_loadd(4, a + term * termNumbers, tileStride);
    _tile_loadd(5, a + term * termNumbers + tileNumbers, tileStride);
  };
  const auto right = [&](int64_t term) {
    _tile_loadd(6, b + term * termNumbers, tileStride);
    _tile_loadd(7, b + term * termNumbers + tileNumbers, tileStride);
  };
  const auto multiply = [] {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  };
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t step = 0; step < steps; ++step, a += stepNumbers, b += stepNumbers) {
    left(0), right(2), multiply();
    right(1), multiply();
    left(1), multiply();
    if (pending.sums)
      pending.add(step, steps);
    right(0), multiply();
    left(2), multiply();
    left(0), multiply();
  }
  constexpr int64_t tileFloats = tileRows * tileRows;
  _tile_stored(0, products, tileStride);
  _tile_stored(1, products + tileFloats, tileStride);
  _tile_stored(2, products + 2 * tileFloats, tileStride);
  _tile_stored(3, products + 3 * tileFloats, tileStride);
}

/// c [rows, cols] = or += a panel's last products and its sums so far, if any, or those and a bias [cols].
void writeOut(const float *products, const float *sums, float *c, int64_t stride, int64_t rows, int64_t cols, bool add,
              const float *bias) {
  for (int64_t row = 0; row < std::min(rows, panel); ++row)
    for (int64_t col = 0; col < std::min(cols, panel); col += tileRows) {
      const int64_t tile = row / tileRows * 2 + col / tileRows, at = (tile * tileRows + row % tileRows) * tileRows;
      const __mmask16 mask = lanes(cols - col);
      float *to = c + row * stride + col;
      __m512 sum = _mm512_load_ps(products + at);
      if (sums)
        sum = _mm512_add_ps(_mm512_load_ps(sums + at), sum);
      if (add || bias)
        sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, bias ? bias + col : to));
      _mm512_mask_storeu_ps(to, mask, sum);
    }
}

/// The products of one blockDepth from `k` on, packed into `work`; the last are written out.
void multiplyPacked(const Gemm<float> &g, const Workspace &work, int64_t k, int64_t steps) {
  const bool first = k == 0, last = k + blockDepth >= g.depth;
  Pending pending;
  int64_t turn = 0;
  for (int64_t row = 0; row < g.rows; row += panel)
    for (int64_t col = 0; col < g.cols; col += panel) {
      float *sums = work.sums + row * work.block.cols + col * panel;
      float *products = first && !last ? sums : work.products + turn++ % 2 * panel * panel;
      multiplyPanels(work.a + row / panel * steps * stepNumbers, work.b + col / panel * steps * stepNumbers, steps,
                     products, pending);
      if (last)
        writeOut(products, first ? nullptr : sums, g.c + row * g.cStride + col, g.cStride, g.rows - row, g.cols - col,
                 g.add, g.bias ? g.bias + col : nullptr);
      else if (!first)
        pending = {products, sums};
    }
  if (pending.sums)
    pending.add(0, 1);
}

/// One block of c; it is written only where all of both operands has three terms.
bool multiplyBlock(const Gemm<float> &g, const Workspace &work) {
  const TileRegisters registers;
  for (int64_t k = 0; k < g.depth; k += blockDepth) {
    const int64_t depth = std::min(blockDepth, g.depth - k), steps = (depth + stepDepth - 1) / stepDepth;
    const Stored a{g.a + (g.transA ? k * g.aStride : k), g.aStride}, b{g.b + (g.transB ? k : k * g.bStride), g.bStride};
    if (!pack<true>(a, !g.transA, g.rows, depth, work.a) || !pack<false>(b, g.transB, g.cols, depth, work.b))
      return false;
    multiplyPacked(g, work, k, steps);
  }
  return true;
}

} // namespace

bool multiplyOnTiles(const Gemm<float> &g, Scratch scratch, bool (*library)(const Gemm<float> &)) noexcept {
  constexpr TileBlock least{TileBlock::minSide, TileBlock::minSide};
  alignas(64) std::byte own[least.bytes()]; // 122 KB, for calls without a workspace
  const bool fits = scratch.bytes >= least.bytes();
  const TileBlock whole = TileBlock::within(TileBlock::of(g.rows, g.cols), fits ? scratch.bytes : least.bytes());
  const Workspace work(whole, fits ? scratch.data : own);
  for (int64_t col = 0; col < g.cols; col += whole.cols)
    for (int64_t row = 0; row < g.rows; row += whole.rows) {
      Gemm<float> block = g;
      block.a += g.transA ? row : row * g.aStride;
      block.b += g.transB ? col * g.bStride : col;
      block.c += row * g.cStride + col;
      block.bias = g.bias ? g.bias + col : nullptr;
      block.rows = std::min(whole.rows, g.rows - row);
      block.cols = std::min(whole.cols, g.cols - col);
      if (!multiplyBlock(block, work) && !library(block))
        return false;
    }
  return true;
}

void configureTiles() {
  struct alignas(64) { // Intel 64 and IA-32 manual, volume 1, chapter 18: palette 1
    uint8_t palette = 1, startRow = 0, reserved[14] = {};
    uint16_t bytesOfRow[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } configuration;
  // The intrinsic names 8 of the 64 bytes that it reads, so a compiler may leave the others unwritten.
  asm volatile("" ::"r"(&configuration) : "memory");
  _tile_loadconfig(&configuration);
}

void releaseTiles() { _tile_release(); }

bool requestTiles() {
  constexpr long requestPermission = 0x1023, tileData = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA
  return __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16") &&
         syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
}

} // namespace ds::kernels

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else

namespace ds::kernels {
bool requestTiles() { return false; }
void configureTiles() {}
void releaseTiles() {}
bool multiplyOnTiles(const Gemm<float> &, Scratch, bool (*)(const Gemm<float> &)) noexcept { return false; }
} // namespace ds::kernels

#endif
