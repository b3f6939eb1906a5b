#include "kernels/cpu/Gemm.h"
#include "kernels/cpu/Isa.h"
#include "kernels/cpu/OneDnn.h"
#include "kernels/cpu/TileGemm.h"

#include <algorithm>

namespace ds::kernels {

namespace {

/// Lets c hold what the product is added to, and returns whether it is: the bias, c itself, or 0 without any depth.
template <typename T> bool startSums(const Gemm<T> &g) {
  for (int64_t i = 0; i < g.rows; ++i)
    if (T *row = g.c + i * g.cStride; g.bias)
      std::copy_n(g.bias, g.cols, row);
    else if (g.depth == 0 && !g.add)
      std::fill_n(row, g.cols, T(0));
  return g.add || g.bias || g.depth == 0;
}

bool multiplyByOneDnn(const Gemm<float> &g) {
  oneDnnUsesThisThreadAlone();
  const bool add = startSums(g);
  return g.depth == 0 || dnnl_sgemm(g.transA ? 'T' : 'N', g.transB ? 'T' : 'N', g.rows, g.cols, g.depth, 1, g.a,
                                    g.aStride, g.b, g.bStride, add ? 1 : 0, g.c, g.cStride) == dnnl_success;
}

} // namespace

bool multiply(const Gemm<float> &g, Scratch scratch) noexcept {
  const bool onTiles = isa() == Isa::Amx && suitsTiles(g.rows, g.cols, g.depth);
  return onTiles ? multiplyOnTiles(g, scratch, multiplyByOneDnn) : multiplyByOneDnn(g);
}

bool multiply(const Gemm<double> &g, Scratch) noexcept {
  constexpr int64_t block = 64;
  const bool add = startSums(g);
  for (int64_t i = 0; i < g.rows && !add; ++i)
    std::fill_n(g.c + i * g.cStride, g.cols, 0.0);
  double b[block][block]; // a block of op(b), its rows contiguous
  for (int64_t j0 = 0; j0 < g.cols; j0 += block)
    for (int64_t l0 = 0; l0 < g.depth; l0 += block) {
      const int64_t cols = std::min(block, g.cols - j0), depth = std::min(block, g.depth - l0);
      for (int64_t l = 0; l < depth; ++l)
        for (int64_t j = 0; j < cols; ++j)
          b[l][j] = g.transB ? g.b[(j0 + j) * g.bStride + l0 + l] : g.b[(l0 + l) * g.bStride + j0 + j];
      for (int64_t i = 0; i < g.rows; ++i)
        for (int64_t l = 0; l < depth; ++l) {
          const double left = g.transA ? g.a[(l0 + l) * g.aStride + i] : g.a[i * g.aStride + l0 + l];
          for (int64_t j = 0; j < cols; ++j)
            g.c[i * g.cStride + j0 + j] += left * b[l][j];
        }
    }
  return true;
}

} // namespace ds::kernels
