#include "kernels/matmul/matmul_epilogue.h"

#include "kernels/GeluTanh.h"

#include <algorithm>

namespace ds::kernels {

namespace {

/// Elements of one piece, and columns that are summed side by side.
constexpr int64_t grain = 16384, width = 64;

template <typename T>
void sumColumns(const CallContext &context, const T *c, T *dbias, int64_t rows, int64_t cols) noexcept {
  parallelFor(context, piecesOf(cols, width), [&](int64_t piece, int) {
    const int64_t first = piece * width, count = std::min(width, cols - first);
    double sums[width] = {};
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < count; ++i)
        sums[i] += double(c[row * cols + first + i]);
    for (int64_t i = 0; i < count; ++i)
      dbias[first + i] = T(sums[i]);
  });
}

} // namespace

template <typename T>
void runMatmulEpilogue(const MatmulCall &call, const CallContext &context, std::span<void *const> operands) noexcept {
  if (call.epilogue == MatmulEpilogue::None)
    return;
  const auto *aux = static_cast<const T *>(operands[call.aux]);
  auto *c = static_cast<T *>(operands[call.c]);
  const bool grad = call.epilogue == MatmulEpilogue::GeluTanhGrad;
  const int64_t rows = call.batches * call.m, total = rows * call.n;
  parallelFor(context, piecesOf(total, grain), [&](int64_t piece, int) {
    for (int64_t i = piece * grain; i < std::min((piece + 1) * grain, total); ++i)
      c[i] = grad ? c[i] * geluTanhSlopeOf(aux[i]) : geluTanhOf(aux[i]);
  });
  if (call.dbias)
    sumColumns(context, c, static_cast<T *>(operands[call.dbias]), rows, call.n);
}

template void runMatmulEpilogue<float>(const MatmulCall &, const CallContext &, std::span<void *const>) noexcept;
template void runMatmulEpilogue<double>(const MatmulCall &, const CallContext &, std::span<void *const>) noexcept;

} // namespace ds::kernels
