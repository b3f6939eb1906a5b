//===- Random.cpp - random numbers -----------------------------------------------===//
//
// All of them are made of train.uniform's, which a run's seed, step and micro-batch and the number of the draw decide.
// No gradient flows into them.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/ops/Algebra.h"
#include "compiler/import/ops/Ops.h"

#include <cmath>
#include <numbers>

namespace ds::import::ops {

/// The type that the node gives its result: `like`, unless attribute dtype says another.
static DType resultType(Node &node, DType like) {
  const auto number = int(node.integerAttr("dtype", 0));
  if (number == 0)
    return like;
  const std::optional<DType> dtype = valueTypeFromOnnx(number);
  if (!dtype)
    throw Failure("the result would be " + onnxTypeName(number) + ", which is not available yet");
  return *dtype;
}

/// Draw k of the node, [0, 1), float64 for a float64 result and else float32.
static Value uniform(Node &node, const Shape &shape, DType result, int k = 0) {
  const DType dtype = result == DType::F64 ? DType::F64 : DType::F32;
  const onnx::AttributeProto *seed = node.attribute("seed", 1);
  const int64_t number = seed ? node.graph().drawIdOf(seed->f(), k) : node.graph().nextDrawId();
  const auto element = mlir::TypeAttr::get(elementType(node.builder().getContext(), dtype));
  auto op = node.create<train::UniformOp>({}, {node.list("shape", shape), node.number("op_id", number),
                                               node.builder().getNamedAttr("element_type", element)});
  return Value::of(op.getResult());
}

static double finiteAttr(Node &node, const char *name, double otherwise) {
  const double value = node.floatAttr(name, otherwise);
  if (!std::isfinite(value))
    throw Failure(std::string(name) + " is " + text(value) + " and must be finite");
  return value;
}

static void requireFloat(DType dtype) {
  if (!ds::isFloat(dtype))
    throw Failure("the result would be " + std::string(ds::name(dtype)) + " and must be a float; say so by dtype");
}

/// Below `high` in 16 bits too: u is rounded down to what those hold in [1/2, 1), as torch.rand's numbers are.
static void drawUniform(Node &node, const Shape &shape, DType dtype) {
  requireFloat(dtype);
  const Algebra math(node);
  const double low = finiteAttr(node, "low", 0), high = finiteAttr(node, "high", 1);
  Value u = uniform(node, shape, dtype);
  if (const double steps = dtype == DType::BF16 ? 256 : dtype == DType::F16 ? 2048 : 0; steps > 0)
    u = math.mul(math.floor(math.mul(u, steps)), 1 / steps);
  if (high - low != 1)
    u = math.mul(u, high - low);
  node.set(0, cast(node, low == 0 ? u : math.add(u, low), dtype));
}

/// Box and Muller, "A note on the generation of random normal deviates", 1958.
static void drawNormal(Node &node, const Shape &shape, DType dtype) {
  requireFloat(dtype);
  const Algebra math(node);
  const double mean = finiteAttr(node, "mean", 0), scale = finiteAttr(node, "scale", 1);
  const Value first = uniform(node, shape, dtype, 0), second = uniform(node, shape, dtype, 1);
  const Value radius = math.sqrt(math.mul(math.log(math.sub(math.number(first.dtype, 1), first)), -2));
  Value z = math.mul(radius, math.cos(math.mul(second, 2 * std::numbers::pi)));
  if (scale != 1)
    z = math.mul(z, scale);
  node.set(0, cast(node, mean == 0 ? z : math.add(z, mean), dtype));
}

static Shape shapeAttr(Node &node) {
  const std::optional<std::vector<int64_t>> shape = node.integersAttr("shape");
  if (!shape)
    throw Failure("the attribute 'shape' is missing");
  return {shape->begin(), shape->end()};
}

void randomUniform(Node &node) { drawUniform(node, shapeAttr(node), resultType(node, DType::F32)); }
void randomUniformLike(Node &node) { drawUniform(node, node.in(0).shape, resultType(node, node.in(0).dtype)); }
void randomNormal(Node &node) { drawNormal(node, shapeAttr(node), resultType(node, DType::F32)); }
void randomNormalLike(Node &node) { drawNormal(node, node.in(0).shape, resultType(node, node.in(0).dtype)); }

/// 1 where u < p, else 0.
void bernoulli(Node &node) {
  const DType dtype = resultType(node, node.in(0).dtype);
  const Value given = node.in(0);
  if (!ds::isFloat(given.dtype))
    throw Failure("the probabilities are " + std::string(ds::name(given.dtype)) + " and must be floats");
  const Value p = given.dtype == DType::F64 ? given : cast(node, given, DType::F32);
  if (const std::optional<Constant> known = node.graph().known(p); known && known->elements() > 0 && known->isUniform())
    if (const double value = known->firstAsDouble(); !(value >= 0 && value <= 1))
      throw Failure("the probability is " + text(value) + " and must be from 0 to 1");
  const Value u = uniform(node, p.shape, p.dtype);
  node.set(0, cast(node, Algebra(node).less(u, p), dtype));
}

} // namespace ds::import::ops
