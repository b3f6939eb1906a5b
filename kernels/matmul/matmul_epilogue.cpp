#include "kernels/matmul/matmul_epilogue.h"

#include "kernels/GeluTanh.h"

#include <algorithm>

namespace ds::kernels {

/// Elements of one piece.
constexpr int64_t grain = 16384;

template <typename T>
void runMatmulEpilogue(const MatmulCall &call, const CallContext &context, std::span<void *const> operands) noexcept {
  if (call.epilogue == MatmulEpilogue::None)
    return;
  const auto *aux = static_cast<const T *>(operands[call.aux]);
  auto *c = static_cast<T *>(operands[call.c]);
  const bool grad = call.epilogue == MatmulEpilogue::GeluTanhGrad;
  const int64_t total = call.batches * call.m * call.n;
  parallelFor(context, piecesOf(total, grain), [&](int64_t piece, int) {
    for (int64_t i = piece * grain; i < std::min((piece + 1) * grain, total); ++i)
      c[i] = grad ? c[i] * geluTanhSlopeOf(aux[i]) : geluTanhOf(aux[i]);
  });
}

template void runMatmulEpilogue<float>(const MatmulCall &, const CallContext &, std::span<void *const>) noexcept;
template void runMatmulEpilogue<double>(const MatmulCall &, const CallContext &, std::span<void *const>) noexcept;

} // namespace ds::kernels
