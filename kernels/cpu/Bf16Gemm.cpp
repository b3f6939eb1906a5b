// VDPBF16PS of AVX512-BF16 adds two products of bfloat16 numbers to each of 16 float32 sums, TDPBF16PS of AMX-BF16
// adds 32 to each of 16 x 16. Both take pairs of neighbours in depth, so both read the same panels:
//   left   [step][32 rows][16 pairs]       a tile register holds 16 rows of one step
//   right  [step][16 pairs][32 columns]    a tile register holds 16 columns of one step
// Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2.
#include "kernels/cpu/Bf16Gemm.h"
#include "kernels/cpu/Isa.h"
#include "kernels/cpu/TileGemm.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ds::kernels {

namespace {

constexpr int64_t width = Bf16Panels::width, stepDepth = Bf16Panels::depth, stepNumbers = Bf16Panels::stepNumbers;
constexpr int64_t pairs = stepDepth / 2; // of a step

/// One step of a panel; `Whole`: nothing of it lies beyond an edge.
template <bool Left, bool AlongDepth, bool Whole>
void packStep(const uint16_t *from, int64_t stride, int64_t rows, int64_t depth, uint16_t *to) {
  const auto number = [&](int64_t w, int64_t k) -> uint32_t {
    if (!Whole && (w >= rows || k >= depth))
      return 0;
    return AlongDepth ? from[w * stride + k] : from[k * stride + w];
  };
  const auto pack = [&](int64_t w, int64_t pair) {
    const uint32_t both = number(w, 2 * pair) | number(w, 2 * pair + 1) << 16;
    std::memcpy(to + 2 * (Left ? w * pairs + pair : pair * width + w), &both, sizeof both);
  };
  if constexpr (AlongDepth)
    for (int64_t w = 0; w < width; ++w)
      for (int64_t pair = 0; pair < pairs; ++pair)
        pack(w, pair);
  else
    for (int64_t pair = 0; pair < pairs; ++pair)
      for (int64_t w = 0; w < width; ++w)
        pack(w, pair);
}

template <bool Left, bool AlongDepth>
void packPanel(const uint16_t *from, int64_t stride, int64_t rows, int64_t depth, uint16_t *to) {
  for (int64_t k = 0; k < depth; k += stepDepth, to += stepNumbers)
    if (const uint16_t *corner = from + (AlongDepth ? k : k * stride); rows >= width && depth - k >= stepDepth)
      packStep<Left, AlongDepth, true>(corner, stride, width, stepDepth, to);
    else
      packStep<Left, AlongDepth, false>(corner, stride, rows, depth - k, to);
}

#if defined(__x86_64__) && defined(__linux__)

/// Of the depth, in steps, between two visits of the same sums: 64 KB of each panel, which stay in a core's cache.
constexpr int64_t blockSteps = 32;
constexpr int64_t groupRows = 8; // whose sums are held in registers

__attribute__((target("avx512f,avx512bf16"))) void addOnVectors(const uint16_t *a, const uint16_t *b, int64_t steps,
                                                                float *sums) {
  __m512 left[groupRows], right[groupRows]; // halves of a row of sums
#pragma GCC unroll 8
  for (int64_t row = 0; row < groupRows; ++row) {
    left[row] = _mm512_load_ps(sums + row * width);
    right[row] = _mm512_load_ps(sums + row * width + width / 2);
  }
  for (int64_t step = 0; step < steps; ++step, a += stepNumbers, b += stepNumbers)
    for (int64_t pair = 0; pair < pairs; ++pair) {
      const auto columns = __m512bh(_mm512_load_si512(b + pair * 2 * width)),
                 others = __m512bh(_mm512_load_si512(b + pair * 2 * width + width));
#pragma GCC unroll 8
      for (int64_t row = 0; row < groupRows; ++row) {
        int32_t both;
        std::memcpy(&both, a + row * stepDepth + 2 * pair, sizeof both);
        const auto numbers = __m512bh(_mm512_set1_epi32(both));
        left[row] = _mm512_dpbf16_ps(left[row], numbers, columns);
        right[row] = _mm512_dpbf16_ps(right[row], numbers, others);
      }
    }
#pragma GCC unroll 8
  for (int64_t row = 0; row < groupRows; ++row) {
    _mm512_store_ps(sums + row * width, left[row]);
    _mm512_store_ps(sums + row * width + width / 2, right[row]);
  }
}

void multiplyOnVectors(const uint16_t *a, const uint16_t *b, int64_t steps, float *sums) {
  std::fill_n(sums, width * width, 0.0f);
  for (int64_t step = 0; step < steps; step += blockSteps)
    for (int64_t row = 0; row < width; row += groupRows)
      addOnVectors(a + step * stepNumbers + row * stepDepth, b + step * stepNumbers, std::min(blockSteps, steps - step),
                   sums + row * width);
}

__attribute__((target("amx-tile,amx-bf16"))) void multiplyOnTileRegisters(const uint16_t *a, const uint16_t *b,
                                                                          int64_t steps, float *sums) {
  constexpr long rowOfLeft = stepDepth * 2, rowOfRight = width * 4, rowOfSums = width * 4; // bytes
  constexpr int64_t half = width / 2;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t step = 0; step < steps; ++step, a += stepNumbers, b += stepNumbers) {
    _tile_loadd(4, a, rowOfLeft);
    _tile_loadd(5, a + half * stepDepth, rowOfLeft);
    _tile_loadd(6, b, rowOfRight);
    _tile_loadd(7, b + 2 * half, rowOfRight);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, rowOfSums);
  _tile_stored(1, sums + half, rowOfSums);
  _tile_stored(2, sums + half * width, rowOfSums);
  _tile_stored(3, sums + half * width + half, rowOfSums);
}

#else

void multiplyOnVectors(const uint16_t *, const uint16_t *, int64_t, float *) {}
void multiplyOnTileRegisters(const uint16_t *, const uint16_t *, int64_t, float *) {}

#endif

bool hasTiles() { return isa() == Isa::Amx; }

} // namespace

bool hasBf16Units() { return isa() >= Isa::Avx512Bf16; }

void packBf16(bool left, Bf16Stored from, int64_t width, int64_t depth, uint16_t *to) {
  const auto pack = left              ? from.alongDepth ? packPanel<true, true> : packPanel<true, false>
                    : from.alongDepth ? packPanel<false, true>
                                      : packPanel<false, false>;
  pack(from.data, from.stride, width, depth, to);
}

Bf16Unit::Bf16Unit() {
  if (hasTiles())
    configureTiles();
}
Bf16Unit::~Bf16Unit() {
  if (hasTiles())
    releaseTiles();
}

void Bf16Unit::multiply(const uint16_t *a, const uint16_t *b, int64_t steps, float *sums) const {
  (hasTiles() ? multiplyOnTileRegisters : multiplyOnVectors)(a, b, steps, sums);
}

} // namespace ds::kernels
