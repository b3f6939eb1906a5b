//===- Windows.cpp - window functions of signals, known while importing -----------------------------------===//
#include "compiler/import/ops/Emit.h"
#include "compiler/import/ops/Ops.h"

#include <cmath>
#include <numbers>

namespace ds::import::ops {

static DType floatTypeAttr(Node &node, const char *name) {
  const auto number = int(node.integerAttr(name, 1));
  const std::optional<DType> dtype = dtypeFromOnnx(number);
  if (!dtype || !ds::isFloat(*dtype))
    throw Failure("the result would be " + onnxTypeName(number) + "; float32 and float64 are supported");
  return *dtype;
}

static Value table(Node &node, const std::vector<double> &values, const Shape &shape, DType dtype) {
  std::vector<char> bytes(values.size() * sizeof(double));
  if (!bytes.empty())
    std::memcpy(bytes.data(), values.data(), bytes.size());
  return Value::of(foldCast(Constant::dense(DType::F64, shape, std::move(bytes)), dtype, node.budget()));
}

/// a - b cos(2 pi n / N) + c cos(4 pi n / N) for n = 0 .. size - 1; N is the size, or one less where not periodic.
static void cosineWindow(Node &node, double a, double b, double c) {
  const int64_t size = node.integer(0, "size");
  if (size < 0)
    throw Failure("the size is " + std::to_string(size));
  node.budget().charge(size);
  const int64_t period = node.integerAttr("periodic", 1) != 0 ? size : size - 1;
  std::vector<double> values;
  for (int64_t n = 0; n < size; ++n) {
    const double angle = period > 0 ? 2 * std::numbers::pi * double(n) / double(period) : 0;
    values.push_back(period > 0 ? a - b * std::cos(angle) + c * std::cos(2 * angle) : 1);
  }
  node.set(0, table(node, values, {size}, floatTypeAttr(node, "output_datatype")));
}
void hannWindow(Node &node) { cosineWindow(node, 0.5, 0.5, 0); }
void hammingWindow(Node &node) { cosineWindow(node, 25.0 / 46, 21.0 / 46, 0); }
void blackmanWindow(Node &node) { cosineWindow(node, 0.42, 0.5, 0.08); }

} // namespace ds::import::ops
