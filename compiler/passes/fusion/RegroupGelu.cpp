//===- RegroupGelu.cpp - find GELU by tanh in what exporters write ---------===//
//
// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), with its factors in any order, as ONNX's Gelu, transformers, Keras
// and JAX write it. Each product is taken for the outermost one.
//
//===----------------------------------------------------------------------===//
#include "compiler/analysis/KernelSelection.h"
#include "compiler/passes/fusion/Passes.h"
#include "compiler/passes/fusion/RegroupedProducts.h"
#include "dialects/Train/Train.h"

#include <cmath>
#include <numbers>

namespace ds {
#define GEN_PASS_DEF_REGROUPGELU
#include "compiler/passes/fusion/Passes.h.inc"
} // namespace ds

using namespace mlir;
using namespace ds;

namespace {

/// A product: of its numbers one, and all that is none.
struct Factors {
  double number = 1;
  SmallVector<Value> values;

  /// Whether this is `wanted`, as float32 holds it, times `count` values.
  bool are(double wanted, size_t count) const {
    return values.size() == count && std::abs(number - wanted) <= 1e-6 * wanted;
  }
};

void collect(Value value, Factors &factors) {
  constexpr size_t most = 4; // no product of a GELU has more
  if (factors.values.size() > most)
    return;
  if (const std::optional<double> number = splatConstant(value)) {
    factors.number *= *number;
    return;
  }
  if (auto product = value.getDefiningOp<train::MulOp>()) {
    collect(product.getLhs(), factors);
    return collect(product.getRhs(), factors);
  }
  auto power = value.getDefiningOp<train::PowOp>();
  const std::optional<double> exponent = power ? splatConstant(power.getRhs()) : std::nullopt;
  if (exponent != 2.0 && exponent != 3.0)
    return factors.values.push_back(value);
  for (int i = 0; i < int(*exponent); ++i)
    collect(power.getLhs(), factors);
}

Factors factorsOf(Value value) {
  Factors factors;
  collect(value, factors);
  return factors;
}

bool isCount(Value value, Value x, size_t count, double number) {
  const Factors factors = factorsOf(value);
  return factors.are(number, count) && llvm::all_of(factors.values, [&](Value v) { return v == x; });
}

/// What `sum` adds to the number one.
Value besideOne(Value sum) {
  auto add = sum.getDefiningOp<train::AddOp>();
  if (!add)
    return {};
  return splatConstant(add.getLhs()) == 1.0   ? add.getRhs()
         : splatConstant(add.getRhs()) == 1.0 ? add.getLhs()
                                              : Value();
}

/// Whether `value` is x + 0.044715 x^3.
bool isCubic(Value value, Value x) {
  auto add = value.getDefiningOp<train::AddOp>();
  const auto adds = [&](Value linear, Value cubic) { return linear == x && isCount(cubic, x, 3, 0.044715); };
  return add && (adds(add.getLhs(), add.getRhs()) || adds(add.getRhs(), add.getLhs()));
}

/// Whether `value` is sqrt(2 / pi) (x + 0.044715 x^3), x outside of the sum or in it.
bool isInner(Value value, Value x) {
  const double root = std::sqrt(2 / std::numbers::pi);
  const Factors factors = factorsOf(value);
  if (factors.are(root, 1))
    return isCubic(factors.values[0], x);
  if (!factors.are(root, 2))
    return false;
  const Value sum = factors.values[0] == x ? factors.values[1] : factors.values[0];
  const Value square = llvm::is_contained(factors.values, x) ? besideOne(sum) : Value();
  return square && isCount(square, x, 2, 0.044715);
}

/// What `product` is the GELU of.
Value inputOf(train::MulOp product) {
  const Factors factors = factorsOf(product);
  if (!factors.are(0.5, 2))
    return {};
  for (const auto &[x, sum] :
       {std::pair(factors.values[0], factors.values[1]), {factors.values[1], factors.values[0]}}) {
    const Value rest = besideOne(sum);
    auto tanh = rest ? rest.getDefiningOp<train::TanhOp>() : train::TanhOp();
    if (tanh && x.getType() == product.getType() && isInner(tanh.getInput(), x))
      return x;
  }
  return {};
}

struct RegroupGelu : ds::impl::RegroupGeluBase<RegroupGelu> {
  void runOnOperation() override {
    replaceProducts(getOperation(), [](OpBuilder &builder, train::MulOp product) -> Value {
      const Value x = inputOf(product);
      return x ? train::GeluTanhOp::create(builder, product.getLoc(), x).getResult() : Value();
    });
  }
};

} // namespace
