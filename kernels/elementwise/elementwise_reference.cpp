// elementwise: one element at a time, every register as a double (floats, rounded to the register's type after each
// instruction) or an int64 (integers, wrapped to the register's width).
#include "kernels/GeluTanh.h"
#include "kernels/Numbers.h"
#include "kernels/elementwise/elementwise_call.h"

#include <cmath>

namespace ds::kernels {

namespace {

struct Value {
  double f = 0;  // of a float
  int64_t i = 0; // of any other type
};

Value load(const void *data, DType type, int64_t index) {
  if (isNarrowFloat(type))
    return withNarrowFloat(
        type, [&](auto zero) { return Value{double(static_cast<const decltype(zero) *>(data)[index]), 0}; });
  return withType(type, [&](auto zero) {
    using T = decltype(zero);
    const T element = static_cast<const T *>(data)[index];
    return std::is_floating_point_v<T> ? Value{double(element), 0} : Value{0, int64_t(element)};
  });
}

void store(void *data, DType type, int64_t index, Value value) {
  if (isNarrowFloat(type))
    return withNarrowFloat(
        type, [&](auto zero) { static_cast<decltype(zero) *>(data)[index] = decltype(zero)(float(value.f)); });
  withType(type, [&](auto zero) {
    using T = decltype(zero);
    static_cast<T *>(data)[index] = std::is_floating_point_v<T> ? T(value.f) : T(value.i);
  });
}

/// Rounds or wraps to what a register of the type can hold.
Value fitted(Value value, DType type) {
  if (type == DType::F32)
    return {double(float(value.f)), 0};
  if (isNarrowFloat(type))
    return withNarrowFloat(type, [&](auto zero) { return Value{double(decltype(zero)(float(value.f))), 0}; });
  if (isFloat(type))
    return value;
  return withType(type, [&](auto zero) {
    using T = decltype(zero);
    return Value{0, std::is_floating_point_v<T> ? 0 : int64_t(T(value.i))};
  });
}

Value cast(Value value, DType from, DType to) {
  if (isFloat(from) && isFloat(to))
    return value;
  if (isFloat(to))
    // One rounding, straight from the integer, as a C cast.
    return {to == DType::F64 ? double(value.i) : double(float(value.i)), 0};
  if (to == DType::Bool)
    return {0, isFloat(from) ? value.f != 0 : value.i != 0};
  if (isFloat(from))
    return {0, to == DType::I32 ? int64_t(truncated<int32_t>(value.f)) : truncated<int64_t>(value.f)};
  return value;
}

bool compare(ElementwiseOp op, auto a, auto b) {
  switch (op) {
  case ElementwiseOp::Equal:
    return a == b;
  case ElementwiseOp::Less:
    return a < b;
  case ElementwiseOp::LessEqual:
    return a <= b;
  case ElementwiseOp::Greater:
    return a > b;
  default:
    return a >= b;
  }
}

int64_t integerResult(ElementwiseOp op, int64_t a, int64_t b) {
  switch (op) {
  case ElementwiseOp::Add:
    return int64_t(uint64_t(a) + uint64_t(b));
  case ElementwiseOp::Sub:
    return int64_t(uint64_t(a) - uint64_t(b));
  case ElementwiseOp::Mul:
    return int64_t(uint64_t(a) * uint64_t(b));
  case ElementwiseOp::Div:
    return b == -1 ? int64_t(0 - uint64_t(a)) : a / b;
  case ElementwiseOp::Max:
    return a > b ? a : b;
  case ElementwiseOp::Min:
    return a < b ? a : b;
  case ElementwiseOp::And:
    return a & b;
  case ElementwiseOp::Or:
    return a | b;
  case ElementwiseOp::Xor:
    return a ^ b;
  case ElementwiseOp::Neg:
    return int64_t(0 - uint64_t(a));
  case ElementwiseOp::Abs:
    return a < 0 ? int64_t(0 - uint64_t(a)) : a;
  case ElementwiseOp::Relu:
    return a > 0 ? a : 0;
  case ElementwiseOp::Not:
    return !a;
  case ElementwiseOp::Sign:
    return (a > 0) - (a < 0);
  default:
    return a; // Copy
  }
}

double floatUnary(ElementwiseOp op, double a) {
  switch (op) {
  case ElementwiseOp::Neg:
    return -a;
  case ElementwiseOp::Abs:
    return std::fabs(a);
  case ElementwiseOp::Sqrt:
    return std::sqrt(a);
  case ElementwiseOp::Rsqrt:
    return 1 / std::sqrt(a);
  case ElementwiseOp::Reciprocal:
    return 1 / a;
  case ElementwiseOp::Exp:
    return std::exp(a);
  case ElementwiseOp::Log:
    return std::log(a);
  case ElementwiseOp::Log1p:
    return std::log1p(a);
  case ElementwiseOp::Expm1:
    return std::expm1(a);
  case ElementwiseOp::GeluTanh:
    return geluTanhOf(a);
  case ElementwiseOp::GeluTanhSlope:
    return geluTanhSlopeOf(a);
  case ElementwiseOp::Erf:
    return std::erf(a);
  case ElementwiseOp::Tanh:
    return std::tanh(a);
  case ElementwiseOp::Sigmoid:
    return a >= 0 ? 1 / (1 + std::exp(-a)) : std::exp(a) / (1 + std::exp(a));
  case ElementwiseOp::Relu:
    return a < 0 ? 0 : a;
  case ElementwiseOp::Sin:
    return std::sin(a);
  case ElementwiseOp::Cos:
    return std::cos(a);
  case ElementwiseOp::Sign: // of NaN 0, as torch.sign
    return double((a > 0) - (a < 0));
  case ElementwiseOp::Floor:
    return std::floor(a);
  case ElementwiseOp::Ceil:
    return std::ceil(a);
  case ElementwiseOp::Round:
    return std::nearbyint(a);
  case ElementwiseOp::Atan:
    return std::atan(a);
  default:
    return a; // Copy
  }
}

double floatResult(ElementwiseOp op, double a, double b) {
  switch (op) {
  case ElementwiseOp::Add:
    return a + b;
  case ElementwiseOp::Sub:
    return a - b;
  case ElementwiseOp::Mul:
    return a * b;
  case ElementwiseOp::Div:
    return a / b;
  case ElementwiseOp::Pow:
    return std::pow(a, b);
  case ElementwiseOp::Max:
    return std::isnan(a) || a > b ? a : b;
  case ElementwiseOp::Min:
    return std::isnan(a) || a < b ? a : b;
  default:
    return floatUnary(op, a);
  }
}

class ElementwiseReference : public Kernel {
public:
  explicit ElementwiseReference(const Call &call) : call_(call), registers_(call_.types.size()) {
    for (const Shape &shape : call_.inputShapes)
      strides_.push_back(broadcastStrides(shape, call_.shape));
  }

  Status execute(const CallContext &, std::span<void *const> operands) noexcept override {
    for (int64_t element = 0; element < call_.elements; ++element) {
      const auto index = unravel(element, call_.shape);
      for (size_t i = 0; i < call_.inputs; ++i) {
        int64_t offset = 0;
        for (size_t d = 0; d < call_.shape.size(); ++d)
          offset += index[d] * strides_[i][d];
        registers_[i] = load(operands[i], call_.types[i], offset);
      }
      for (size_t k = 0; k < call_.program.size(); ++k) {
        const ElementwiseInstruction &instruction = call_.program[k];
        if (dividesByZero(instruction))
          return Status::failure("kernel 'elementwise': integer division by zero at element %lld of instruction %zu",
                                 static_cast<long long>(element), k);
        registers_[call_.inputs + k] = fitted(evaluate(instruction), instruction.type);
      }
      for (size_t r = 0; r < call_.results.size(); ++r)
        store(operands[call_.inputs + r], type(call_.results[r]), element, value(call_.results[r]));
    }
    return Status::success();
  }

private:
  DType type(int reg) const { return call_.types[size_t(reg)]; }
  const Value &value(int reg) const { return registers_[size_t(reg)]; }

  bool dividesByZero(const ElementwiseInstruction &instruction) const {
    return instruction.op == ElementwiseOp::Div && !isFloat(instruction.type) && value(instruction.sources[1]).i == 0;
  }

  Value evaluate(const ElementwiseInstruction &instruction) const {
    const auto [op, to, sources, constant] = instruction;
    if (op == ElementwiseOp::Constant)
      return isFloat(to) ? Value{constant, 0} : cast({constant, 0}, DType::F64, to);
    const Value a = value(sources[0]);
    const DType from = type(sources[0]);
    if (op == ElementwiseOp::Cast)
      return cast(a, from, to);
    if (op == ElementwiseOp::Select)
      return a.i ? value(sources[1]) : value(sources[2]);
    if (op == ElementwiseOp::IsNan)
      return {0, std::isnan(a.f)};
    const Value b = elementwiseArity(op) == 2 ? value(sources[1]) : Value{};
    if (to == DType::Bool && op >= ElementwiseOp::Equal && op <= ElementwiseOp::GreaterEqual)
      return {0, isFloat(from) ? compare(op, a.f, b.f) : compare(op, a.i, b.i)};
    return isFloat(to) ? Value{floatResult(op, a.f, b.f), 0} : Value{0, integerResult(op, a.i, b.i)};
  }

  ElementwiseCall call_;
  std::vector<std::array<int64_t, maxRank>> strides_;
  std::vector<Value> registers_;
};

} // namespace

std::unique_ptr<Kernel> makeElementwiseReference(const Invocation &invocation, const BuildOptions &) {
  return std::make_unique<ElementwiseReference>(Call(invocation));
}

} // namespace ds::kernels
