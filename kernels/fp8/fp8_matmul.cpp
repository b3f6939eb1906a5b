// fp8_matmul on a CPU, to check other devices by: the numbers that the codes stand for, matmul's kernel for float32,
// then scales and bias.
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
  Fp8Matmul(const Fp8MatmulCall &call, const BuildOptions &options) : call_(call) {
    const int64_t factors = fp8FactorBytes(call), rest = call.workspace.bytes - factors;
    if (rest < 0)
      own_.resize(size_t(factors));
    for (size_t code = 0; code < numbersOf_[0].size(); ++code) {
      numbersOf_[0][code] = float8Value(call.aFormat, uint8_t(code));
      numbersOf_[1][code] = float8Value(call.bFormat, uint8_t(code));
    }
    Invocation product = call.product(false);
    if (rest > 0)
      product.operands.push_back({DType::U8, {rest}});
    product_ = makeMatmul(product, options);
  }

  Status execute(const CallContext &context, std::span<void *const> operands) noexcept override {
    using Operands = Fp8MatmulCall;
    std::byte *area = own_.empty() ? static_cast<std::byte *>(call_.workspace.at(operands)) : own_.data();
    auto *a = reinterpret_cast<float *>(area);
    auto *b = reinterpret_cast<float *>(area + fp8FactorBytes(call_.m * call_.k));
    auto *c = static_cast<float *>(operands[call_.c]);
    decode(context, operands[Operands::a], numbersOf_[0], a, call_.m * call_.k);
    decode(context, operands[Operands::b], numbersOf_[1], b, call_.n * call_.k);
    const std::array<void *, 4> product{a, b, c, area + fp8FactorBytes(call_)};
    if (Status status = product_->execute(context, product); !status.ok())
      return status;
    const float scale =
        *static_cast<float *>(operands[Operands::aScale]) * *static_cast<float *>(operands[Operands::bScale]);
    const auto *bias = call_.hasBias ? static_cast<const float *>(operands[Operands::bias]) : nullptr;
    parallelFor(context, piecesOf(call_.m * call_.n, grain), [&](int64_t piece, int) {
      for (int64_t i = piece * grain, end = std::min(i + grain, call_.m * call_.n); i < end; ++i)
        c[i] = c[i] * scale + (bias ? bias[i % call_.n] : 0.0F);
    });
    return Status::success();
  }

private:
  using Numbers = std::array<float, 256>; ///< by code

  static void decode(const CallContext &context, const void *codes, const Numbers &numbers, float *to, int64_t count) {
    const auto *from = static_cast<const uint8_t *>(codes);
    parallelFor(context, piecesOf(count, grain), [&](int64_t piece, int) {
      for (int64_t i = piece * grain, end = std::min(i + grain, count); i < end; ++i)
        to[i] = numbers[from[i]];
    });
  }

  Fp8MatmulCall call_;
  std::vector<std::byte> own_; ///< empty where the workspace has room for the factors
  std::array<Numbers, 2> numbersOf_;
  std::unique_ptr<Kernel> product_;
};

} // namespace

std::unique_ptr<Kernel> makeFp8Matmul(const Invocation &invocation, const BuildOptions &options) {
  return std::make_unique<Fp8Matmul>(Fp8MatmulCall(Call(invocation)), options);
}

} // namespace ds::kernels
