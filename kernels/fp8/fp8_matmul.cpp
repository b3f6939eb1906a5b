// fp8_matmul on a CPU, to check other devices by: block by block the numbers that the codes stand for, matmul's kernel
// for float32, then scales; at last the bias.
#include "kernels/fp8/fp8_pieces.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace ds::kernels {

std::unique_ptr<Kernel> makeMatmul(const Invocation &, const BuildOptions &);

namespace {

constexpr int64_t grain = 1 << 14; // elements of a piece

class Fp8Matmul final : public Kernel {
public:
  Fp8Matmul(const Fp8MatmulCall &call, const BuildOptions &options)
      : call_(call), step_(call.aScales.step()), blocks_(step_ > 0 ? piecesOf(call.k, step_) : 1) {
    const int64_t own = fp8FactorBytes(call), rest = call.workspace.bytes - own;
    if (rest < 0)
      own_.resize(size_t(own));
    for (size_t code = 0; code < numbersOf_[0].size(); ++code) {
      numbersOf_[0][code] = float8Value(call.aFormat, uint8_t(code));
      numbersOf_[1][code] = float8Value(call.bFormat, uint8_t(code));
    }
    const auto make = [&](int64_t depth) {
      Invocation product = call.product(false, depth);
      if (rest > 0)
        product.operands.push_back({DType::U8, {rest}});
      return makeMatmul(product, options);
    };
    product_ = make(step_);
    if (const int64_t last = call.k - (blocks_ - 1) * step_; last < step_)
      lastProduct_ = make(last);
  }

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    using Operands = Fp8MatmulCall;
    std::byte *area = own_.empty() ? static_cast<std::byte *>(call_.workspace.at(operands)) : own_.data();
    auto *a = reinterpret_cast<float *>(area);
    auto *b = reinterpret_cast<float *>(area + fp8FactorBytes(call_.m * step_));
    auto *c = static_cast<float *>(operands[call_.c]);
    std::byte *behind = area + fp8FactorBytes(call_.m * step_) + fp8FactorBytes(call_.n * step_);
    for (int64_t block = 0; block < blocks_; ++block) {
      const int64_t l = block * step_, depth = std::min(step_, call_.k - l);
      decode(context, operands[Operands::a], numbersOf_[0], a, {call_.m, l, depth});
      decode(context, operands[Operands::b], numbersOf_[1], b, {call_.n, l, depth});
      auto *sums = l == 0 ? c : reinterpret_cast<float *>(behind);
      const std::array<void *, 4> product{a, b, sums, area + fp8FactorBytes(call_)};
      if (Status status = (depth < step_ ? lastProduct_ : product_)->execute(context, product); !status.ok())
        return status;
      addScaled(context, operands, sums, l);
    }
    return Status::success();
  }

private:
  using Numbers = std::array<float, 256>; ///< by code

  /// Columns [begin, begin + depth) of `lines` lines.
  struct Columns {
    int64_t lines, begin, depth;
  };
  void decode(const CallContext &context, const void *codes, const Numbers &numbers, float *to, Columns columns) const {
    const int64_t lines = std::max<int64_t>(grain / std::max<int64_t>(columns.depth, 1), 1); // of a piece
    parallelFor(context, piecesOf(columns.lines, lines), [&](int64_t piece, int) {
      for (int64_t i = piece * lines, end = std::min(i + lines, columns.lines); i < end; ++i) {
        const auto *from = static_cast<const uint8_t *>(codes) + i * call_.k + columns.begin;
        for (int64_t l = 0; l < columns.depth; ++l)
          to[i * columns.depth + l] = numbers[from[l]];
      }
    });
  }

  /// Adds the sums of the blocks from column l on, times their scales, to those before; the bias with the last ones.
  void addScaled(const CallContext &context, std::span<void *const> operands, const float *sums, int64_t l) const {
    using Operands = Fp8MatmulCall;
    const auto *aScale = static_cast<const float *>(operands[Operands::aScale]),
               *bScale = static_cast<const float *>(operands[Operands::bScale]);
    const auto *bias =
        call_.hasBias && l + step_ >= call_.k ? static_cast<const float *>(operands[Operands::bias]) : nullptr;
    auto *c = static_cast<float *>(operands[call_.c]);
    const bool hasScales = call_.aScales.count() > 0 && call_.bScales.count() > 0;
    parallelFor(context, piecesOf(call_.m * call_.n, grain), [&](int64_t piece, int) {
      for (int64_t at = piece * grain, end = std::min(at + grain, call_.m * call_.n); at < end; ++at) {
        const int64_t i = at / call_.n, j = at % call_.n;
        const float scale = hasScales ? aScale[call_.aScales.at(i, l)] * bScale[call_.bScales.at(j, l)] : 1;
        c[at] = (l == 0 ? 0.0F : c[at]) + sums[at] * scale + (bias ? bias[j] : 0.0F);
      }
    });
  }

  Fp8MatmulCall call_;
  int64_t step_, blocks_;                         ///< columns that have one scale, and how many such there are
  std::vector<std::byte> own_;                    ///< empty where the workspace has room for the factors
  std::array<Numbers, 2> numbersOf_;              ///< of a, of b
  std::unique_ptr<Kernel> product_, lastProduct_; ///< of a step, and of fewer columns at the end
};

} // namespace

std::unique_ptr<Kernel> makeFp8Matmul(const Invocation &invocation, const BuildOptions &options) {
  return std::make_unique<Fp8Matmul>(Fp8MatmulCall(Call(invocation)), options);
}

} // namespace ds::kernels
