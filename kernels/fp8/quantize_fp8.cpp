// quantize_fp8: the largest magnitude first, then the codes; maxima depend on no order.
#include "kernels/fp8/fp8_call.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace ds::kernels {

namespace {

/// Rows of a piece: what is written transposed then has whole lines of a cache.
constexpr int64_t pieceRows = 64;

/// NaN wins.
float larger(float a, float b) { return a > b || std::isnan(a) ? a : b; }

class QuantizeFp8 final : public Kernel {
public:
  explicit QuantizeFp8(const QuantizeFp8Call &call) : call_(call), largest_(size_t(piecesOf(call.rows, pieceRows))) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    using Operands = QuantizeFp8Call;
    const auto *x = static_cast<const float *>(operands[Operands::x]);
    auto *q = static_cast<uint8_t *>(operands[Operands::q]);
    const auto pieces = int64_t(largest_.size());
    parallelFor(context, pieces, [&](int64_t piece, int) {
      const int64_t begin = piece * pieceRows, end = std::min(begin + pieceRows, call_.rows);
      float largest = 0;
      for (int64_t i = begin * call_.cols; i < end * call_.cols; ++i)
        largest = larger(std::fabs(x[i]), largest);
      largest_[size_t(piece)] = largest;
    });
    float largest = 0;
    for (const float ofPiece : largest_)
      largest = larger(ofPiece, largest);
    const Float8Scale scale = float8Scale(call_.format, largest);
    *static_cast<float *>(operands[Operands::scale]) = scale.scale;
    parallelFor(context, pieces, [&](int64_t piece, int) { writeRows(x, q, piece * pieceRows, scale.inverse); });
    return Status::success();
  }

private:
  void writeRows(const float *x, uint8_t *q, int64_t begin, float inverse) const {
    const int64_t end = std::min(begin + pieceRows, call_.rows);
    if (!call_.transposed) {
      for (int64_t i = begin * call_.cols; i < end * call_.cols; ++i)
        q[i] = float8Bits(call_.format, x[i] * inverse);
      return;
    }
    for (int64_t col = 0; col < call_.cols; ++col)
      for (int64_t row = begin; row < end; ++row)
        q[col * call_.rows + row] = float8Bits(call_.format, x[row * call_.cols + col] * inverse);
  }

  QuantizeFp8Call call_;
  std::vector<float> largest_; ///< of each piece
};

} // namespace

std::unique_ptr<Kernel> makeQuantizeFp8(const Invocation &invocation, const BuildOptions &) {
  return std::make_unique<QuantizeFp8>(QuantizeFp8Call(Call(invocation)));
}

} // namespace ds::kernels
