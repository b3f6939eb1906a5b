// quantize_fp8: the largest magnitude first, of all or of a block, then the codes; maxima depend on no order.
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

/// With a scale of the whole tensor.
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

/// With scales of blocks: pieces are squares of q of 128 x 128, those behind its depth too, which have scales of 1.
class QuantizeFp8Blocks final : public Kernel {
public:
  explicit QuantizeFp8Blocks(const QuantizeFp8Call &call) : call_(call) {}

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    const Float8Scales &scales = call_.scales;
    const bool isSquare = scales.block == Float8Block::Square;
    const int64_t down = piecesOf(scales.lines, edge), across = isSquare ? scales.cols() : scales.rows();
    parallelFor(context, down * across, [&](int64_t piece, int) {
      const int64_t line = piece / across * edge, place = piece % across * edge;
      const int64_t lines = std::min(edge, scales.lines - line);
      for (int64_t l = 0; l < lines; l += isSquare ? lines : 1)
        writeBlock(operands,
                   {line + l, isSquare ? lines : 1, place, std::clamp(scales.depth - place, int64_t(0), edge)});
    });
    return Status::success();
  }

private:
  static constexpr int64_t edge = float8BlockEdge;

  struct Block {
    int64_t line, lines, place, places;
  };

  void writeBlock(std::span<void *const> operands, const Block &block) const {
    using Operands = QuantizeFp8Call;
    const auto *x = static_cast<const float *>(operands[Operands::x]);
    auto *q = static_cast<uint8_t *>(operands[Operands::q]);
    const int64_t ofLine = call_.transposed ? 1 : call_.cols, ofPlace = call_.transposed ? call_.cols : 1;
    const auto forEach = [&](auto visit) {
      for (int64_t line = block.line; line < block.line + block.lines; ++line)
        for (int64_t place = block.place; place < block.place + block.places; ++place)
          visit(x[line * ofLine + place * ofPlace], q[line * call_.scales.depth + place]);
    };
    float largest = 0;
    forEach([&](float number, uint8_t) { largest = larger(std::fabs(number), largest); });
    const Float8Scale scale = float8Scale(call_.format, largest);
    static_cast<float *>(operands[Operands::scale])[call_.scales.at(block.line, block.place)] = scale.scale;
    forEach([&](float number, uint8_t &code) { code = float8Bits(call_.format, number * scale.inverse); });
  }

  QuantizeFp8Call call_;
};

} // namespace

std::unique_ptr<Kernel> makeQuantizeFp8(const Invocation &invocation, const BuildOptions &) {
  const QuantizeFp8Call call{Call(invocation)};
  if (call.scales.block == Float8Block::Tensor)
    return std::make_unique<QuantizeFp8>(call);
  return std::make_unique<QuantizeFp8Blocks>(call);
}

} // namespace ds::kernels
