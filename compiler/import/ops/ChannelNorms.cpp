//===- ChannelNorms.cpp - batch, instance and group normalization -----------------------------------===//
#include "compiler/import/Hazards.h"
#include "compiler/import/ops/Algebra.h"
#include "compiler/import/ops/Epsilon.h"
#include "compiler/import/ops/Ops.h"
#include "dialects/Train/ChannelNorm.h"

namespace ds::import::ops {

static void expectVector(const Value &value, const char *what, int64_t size) {
  if (value.shape != Shape{size})
    throw Failure("the " + std::string(what) + " " + toString(value.shape) + " must be a vector of " +
                  std::to_string(size));
}

//===-- batch normalization -------------------------------------------------------===//

/// Whether the file says that the batch's own statistics normalise.
static bool saysTraining(Node &node) {
  if (node.opset() >= 14)
    return node.integerAttr("training_mode", 0) != 0;
  return node.opset() >= 7 ? node.outputs() > 1 : node.integerAttr("is_test", 0) == 0;
}

/// Whether to normalise by the batch's statistics; what an exporter lost is decided by --batch-norm.
static bool usesBatch(Node &node) {
  using Mode = ImportOptions::BatchNorm;
  const Mode mode = node.graph().options().batchNorm;
  const bool isFrozen = cameFrom(node.proto(), "_native_batch_norm_legit_no_training");
  if (saysTraining(node) || (mode == Mode::Train && !isFrozen))
    return true;
  if (mode == Mode::AsWritten || !lostBatchNormTraining(node.proto(), node.graph().metadata()))
    return false;
  throw Failure(
      std::string(
          "the exporter wrote this batch normalization of a module in training mode in inference mode; export with "
          "models/export.py or its custom_translation_table, or choose with --batch-norm=as-written|train") +
      saysMore("batch-norm-mode"));
}

/// running = momentum * running + (1 - momentum) * statistic, once a micro-batch, where `running` is a buffer.
static void updateAverage(Node &node, const Value &running, mlir::Value statistic, double momentum, double correction) {
  if (running.kind != Value::Kind::Variable || running.variable->parameter)
    return;
  running.variable->foldable = false;
  running.variable->persistent = true;
  mlir::OpBuilder &b = node.builder();
  auto symbol = mlir::FlatSymbolRefAttr::get(b.getContext(), running.variable->name);
  train::UpdateAverageOp::create(b, node.location(), symbol, statistic, b.getF64FloatAttr(momentum),
                                 b.getF64FloatAttr(correction));
}

/// What ONNX's outputs 1 and 2 hold: the average after the update.
static Value averaged(Node &node, const Value &running, mlir::Value statistic, double momentum) {
  const Value kept = binary<train::MulOp>(node, BinaryFold::Mul, running, floatScalar(running.dtype, momentum));
  const Value taken =
      binary<train::MulOp>(node, BinaryFold::Mul, Value::of(statistic), floatScalar(running.dtype, 1 - momentum));
  return binary<train::AddOp>(node, BinaryFold::Add, kept, taken);
}

/// ONNX averages the variance of the batch, PyTorch the n / (n - 1) times larger one of what the batch is a sample of.
static double varianceCorrection(Node &node, const Value &input) {
  if (!node.graph().metadata().fromPyTorch)
    return 1;
  const int64_t count = elementCount(input.shape) / std::max<int64_t>(input.shape[1], 1);
  if (count < 2)
    throw Failure("batch normalization of " + toString(input.shape) +
                  " in training mode has one value per channel; it needs two or more: make the micro-batch larger");
  return double(count) / double(count - 1);
}

static void batchNormByBatch(Node &node, const Value &input, double epsilon) {
  const mlir::Value x = node.operand(input), scale = node.operand(node.in(1)), shift = node.operand(node.in(2));
  auto op = node.create<train::BatchNormOp>({x, scale, shift}, {node.real("epsilon", epsilon)});
  const Value mean = node.in(3), variance = node.in(4);
  const double momentum = node.floatAttr("momentum", 0.9);
  if (!(momentum >= 0 && momentum <= 1))
    throw Failure("the momentum is " + text(momentum) + " and must be between 0 and 1");
  node.set(0, Value::of(op.getResult()));
  if (node.wants(1))
    node.set(1, averaged(node, mean, op.getMean(), momentum));
  if (node.wants(2))
    node.set(2, averaged(node, variance, op.getVariance(), momentum));
  updateAverage(node, mean, op.getMean(), momentum, 1);
  updateAverage(node, variance, op.getVariance(), momentum, varianceCorrection(node, input));
}

void batchNormalization(Node &node) {
  const Value input = node.floatIn(0);
  if (input.rank() < 2)
    throw Failure("the input " + toString(input.shape) + " must have the dimensions N and C");
  if (node.opset() < 9 && node.integerAttr("spatial", 1) == 0)
    throw Failure("spatial=0 is not supported; each channel has one mean and one variance");
  const char *const names[] = {"scale", "shift", "mean", "variance"};
  for (size_t i = 1; i < 5; ++i)
    expectVector(node.floatIn(i), names[i - 1], input.shape[1]);
  const double epsilon = epsilonOf(node);
  if (usesBatch(node))
    return batchNormByBatch(node, input, epsilon);
  llvm::SmallVector<mlir::Value, 5> operands;
  for (size_t i = 0; i < 5; ++i) {
    if (node.in(i).dtype != input.dtype)
      throw Failure("the input is " + std::string(ds::name(input.dtype)) + " and input " + std::to_string(i) + " " +
                    std::string(ds::name(node.in(i).dtype)) + "; they must have one type");
    operands.push_back(node.operand(node.in(i)));
  }
  mlir::ImplicitLocOpBuilder b(node.location(), node.builder());
  node.set(0, Value::of(train::normalizeChannels(b, operands[0], operands[1], operands[2], operands[3], operands[4],
                                                 epsilon)));
}

//===-- instance and group normalization --------------------------------------------===//

/// x [N, ...] with `groups` runs of each sample normalised by themselves; scale and shift have one element a run.
static Value normalizeRuns(Node &node, const Value &input, int64_t groups, const Value &scale, const Value &shift) {
  const int64_t samples = input.shape[0], runs = samples * groups;
  const Shape view{1, runs, runs ? elementCount(input.shape) / runs : 0};
  auto spread = [&](const Value &value) {
    return node.operand(reshape(node, broadcastTo(node, value, {samples, groups}), {runs}));
  };
  const mlir::Value x = node.operand(reshape(node, input, view)), factors = spread(scale), shifts = spread(shift);
  auto op = node.create<train::BatchNormOp>({x, factors, shifts}, {node.real("epsilon", epsilonOf(node))});
  return reshape(node, Value::of(op.getResult()), input.shape);
}

/// A channel of a sample is a run.
void instanceNormalization(Node &node) {
  const Value input = node.floatIn(0), scale = node.floatIn(1), shift = node.floatIn(2);
  if (input.rank() < 3)
    throw Failure("the input " + toString(input.shape) + " must have the dimensions N, C and a spatial one");
  expectVector(scale, "scale", input.shape[1]);
  expectVector(shift, "shift", input.shape[1]);
  node.set(0, normalizeRuns(node, input, input.shape[1], scale, shift));
}

/// Before opset 21 scale and shift have one element a group, from then on one a channel.
void groupNormalization(Node &node) {
  const Value input = node.floatIn(0), scale = node.floatIn(1), shift = node.floatIn(2);
  const int64_t groups = node.integerAttr("num_groups", 0);
  if (input.rank() < 2 || groups < 1 || input.shape[1] % groups != 0)
    throw Failure("num_groups " + std::to_string(groups) + " does not divide the channels of the input " +
                  toString(input.shape));
  const bool perChannel = node.opset() >= 21;
  expectVector(scale, "scale", perChannel ? input.shape[1] : groups);
  expectVector(shift, "shift", perChannel ? input.shape[1] : groups);
  if (!perChannel)
    return node.set(0, normalizeRuns(node, input, groups, scale, shift));
  const Value normal = normalizeRuns(node, input, groups, floatScalar(input.dtype, 1), floatScalar(input.dtype, 0));
  Shape column(size_t(input.rank()) - 1, 1);
  column[0] = input.shape[1];
  const Value scaled = binary<train::MulOp>(node, BinaryFold::Mul, normal, reshape(node, scale, column));
  node.set(0, binary<train::AddOp>(node, BinaryFold::Add, scaled, reshape(node, shift, column)));
}

//===-- local response normalization ----------------------------------------------===//

/// x / (bias + alpha / size * sum of the squares of `size` channels around it) ^ beta. The sum over size is a mean of
/// channels with zeros around them.
void localResponseNormalization(Node &node) {
  const Algebra math(node);
  const Value input = node.floatIn(0);
  const int64_t size = node.integerAttr("size", 0);
  if (input.rank() < 2 || size < 1 || size > (int64_t(1) << 24))
    throw Failure("needs an input of rank 2 or more and a size of at least 1, not " + toString(input.shape) + " and " +
                  std::to_string(size));
  const int64_t samples = input.shape[0], channels = input.shape[1];
  const int64_t places = elementCount(Shape(input.shape.begin() + 2, input.shape.end()));
  const Value squares = reshape(node, math.mul(input, input), {samples, 1, channels, places});
  const std::vector<int64_t> none(4, 0), ones(2, 1), zeros(2, 0);
  auto padded = node.create<train::PadOp>(
      {node.operand(squares)}, {node.list("low", {0, 0, (size - 1) / 2, 0}), node.list("high", {0, 0, size / 2, 0}),
                                node.list("interior", none), node.real("value", 0)});
  const Value mean = Value::of(
      node.create<train::AveragePoolOp>({padded.getResult()}, {node.list("window", {size, 1}),
                                                               node.list("strides", ones), node.list("dilations", ones),
                                                               node.list("low", zeros), node.list("high", zeros)})
          .getResult());
  const Value base = math.add(math.mul(mean, node.floatAttr("alpha", 1e-4)), node.floatAttr("bias", 1));
  const Value divisor = math.power(base, math.number(input.dtype, node.floatAttr("beta", 0.75)));
  node.set(0, math.div(input, reshape(node, divisor, input.shape)));
}

} // namespace ds::import::ops
