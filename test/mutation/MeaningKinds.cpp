//===- MeaningKinds.cpp - what commands compute ----------------------------===//
#include "test/mutation/Kinds.h"

#include <algorithm>
#include <cstring>

namespace ds::mutation {

namespace {

/// The constant that the gradient of the loss begins with: 1 / (micro-batches of all ranks).
std::string scaleTwice(proto::Plan &plan, Random &random) {
  std::vector<proto::Variable *> constants;
  for (const Place &place : find(plan, makesLossGradient)) {
    const proto::KernelCommand &kernel = at(std::as_const(plan), place).kernel();
    const proto::Operand &scale = kernel.operands(kernel.kernel() == "cross_entropy_grad" ? 3 : 2);
    if (const proto::Buffer &buffer = bufferOf(plan, place, scale); buffer.has_variable())
      constants.push_back(plan.mutable_variables(int(buffer.variable())));
  }
  const auto constant = random.pick(constants);
  if (!constant || (*constant)->source().literal().size() != sizeof(float))
    return "";
  float value = 0;
  std::memcpy(&value, (*constant)->source().literal().data(), sizeof value);
  if (value == 1)
    return "";
  value *= value;
  (*constant)->mutable_source()->set_literal(&value, sizeof value);
  return "the scale of the loss " + (*constant)->name() + " applied twice";
}

template <typename Change>
std::string changeAttribute(proto::Plan &plan, Random &random, const std::vector<Place> &places, const char *name,
                            Change change) {
  const auto place = random.pick(places);
  proto::Attribute *field = place ? attribute(at(plan, *place), name) : nullptr;
  if (!field || !change(*field))
    return "";
  return describe(plan, *place) + " with another " + name;
}
template <typename Change>
std::string changeAttribute(proto::Plan &plan, Random &random, const char *kernel, const char *name, Change change) {
  const auto isOne = [&](const proto::Command &command) { return isKernel(command, kernel); };
  return changeAttribute(plan, random, find(plan, isOne), name, change);
}

bool doubled(proto::Attribute &field) {
  const double old = field.number();
  field.set_number(2 * old);
  return old != 0;
}
bool flipped(proto::Attribute &field) {
  field.set_integer(1 - field.integer());
  return true;
}

std::string wrongRate(proto::Plan &plan, Random &random) {
  return changeAttribute(plan, random, "learning_rate", "lr", doubled);
}
std::string wrongDecay(proto::Plan &plan, Random &random) {
  return changeAttribute(plan, random, find(plan, keepsTwoMoments), "weight_decay", doubled);
}
std::string wrongBeta(proto::Plan &plan, Random &random) {
  return changeAttribute(plan, random, find(plan, keepsTwoMoments), "beta1", doubled);
}
std::string wrongClip(proto::Plan &plan, Random &random) {
  return changeAttribute(plan, random, "clip_factor", "max_norm", doubled);
}
std::string wrongEpsilon(proto::Plan &plan, Random &random) {
  return changeAttribute(plan, random, "layer_norm", "epsilon", [](proto::Attribute &field) {
    field.set_number(0.5);
    return true;
  });
}
std::string wrongScore(proto::Plan &plan, Random &random) {
  return changeAttribute(plan, random, "attention", "scale", doubled);
}
std::string notCausal(proto::Plan &plan, Random &random) {
  return changeAttribute(plan, random, "attention", "causal", flipped);
}

/// A square product whose side is transposed: shapes still fit.
std::string wrongTranspose(proto::Plan &plan, Random &random) {
  const auto place = random.pick(find(plan, [](const proto::Command &command) {
    const auto &operands = command.kernel().operands();
    return isKernel(command, "matmul") && operands[1].shape_size() == 2 && operands[1].shape(0) == operands[1].shape(1);
  }));
  if (!place)
    return "";
  flipped(*attribute(at(plan, *place), "trans_b"));
  return describe(plan, *place) + " with its right side transposed";
}

/// Clipping by something that is no factor: the learning rate, which has the same type.
std::string clipNotApplied(proto::Plan &plan, Random &random) {
  const auto place = random.pick(find(plan, keepsTwoMoments));
  if (!place)
    return "";
  auto &operands = *at(plan, *place).mutable_kernel()->mutable_operands();
  operands[6] = operands[4];
  return describe(plan, *place) + " clips by the learning rate";
}

std::string swapOperands(proto::Plan &plan, Random &random) {
  std::vector<Place> places = find(plan, [](const proto::Command &command) {
    const auto &operands = command.kernel().operands();
    return command.has_kernel() && operands.size() > 2 && reads(operands[0]) && reads(operands[1]) &&
           operands[0].SerializeAsString() != operands[1].SerializeAsString() &&
           operands[0].dtype() == operands[1].dtype() && bytesOf(operands[0]) == bytesOf(operands[1]);
  });
  const auto place = random.pick(places);
  if (!place)
    return "";
  at(plan, *place).mutable_kernel()->mutable_operands()->SwapElements(0, 1);
  return describe(plan, *place) + " with its first two operands swapped";
}

/// Another opcode of the same arity in an elementwise program.
std::string otherOpcode(proto::Plan &plan, Random &random) {
  const auto place =
      random.pick(find(plan, [](const proto::Command &command) { return isKernel(command, "elementwise"); }));
  if (!place)
    return "";
  auto &program = *attribute(at(plan, *place), "program")->mutable_integers()->mutable_values();
  std::vector<int> places;
  for (int i = 0; i < program.size(); i += 5)
    if (program[i] == 10 || program[i] == 12) // Add, Mul
      places.push_back(i);
  const auto instruction = random.pick(places);
  if (!instruction)
    return "";
  program[*instruction] = program[*instruction] == 10 ? 12 : 10;
  return describe(plan, *place) + " multiplies where it should add, or the other way";
}

/// A sum of two contributions to one gradient takes the first alone: a tied weight that is not summed.
std::string tiedNotSummed(proto::Plan &plan, Random &random) {
  std::vector<Place> places = find(plan, [](const proto::Command &command) {
    if (!isKernel(command, "elementwise") || command.kernel().operands_size() != 3)
      return false;
    for (const proto::Attribute &one : command.kernel().attributes())
      if (one.name() == "program")
        return one.integers().values_size() == 5 && one.integers().values(0) == 10;
    return false;
  });
  std::erase_if(places, [&](const Place &place) {
    const proto::Operand &result = at(std::as_const(plan), place).kernel().operands(2);
    return bufferOf(plan, place, result).category() != proto::Buffer::GRADIENTS &&
           bufferOf(plan, place, result).category() != proto::Buffer::COMMUNICATION;
  });
  const auto place = random.pick(places);
  if (!place)
    return "";
  auto &program = *attribute(at(plan, *place), "program")->mutable_integers()->mutable_values();
  program[0] = 1; // Copy
  program[3] = -1;
  return describe(plan, *place) + " takes one of the contributions alone";
}

std::string dropFeed(proto::Plan &plan, Random &random) {
  return leaveOut(plan, random, find(plan, [](const proto::Command &command) { return command.has_feed(); }));
}

std::string otherInput(proto::Plan &plan, Random &random) {
  std::vector<Place> places = find(plan, [](const proto::Command &command) { return command.has_feed(); });
  const auto place = random.pick(places);
  if (!place || plan.inputs_size() < 2)
    return "";
  proto::FeedCommand &feed = *at(plan, *place).mutable_feed();
  feed.set_input((feed.input() + 1) % uint32_t(plan.inputs_size()));
  return describe(plan, *place) + " feeds " + plan.inputs(int(feed.input())).name();
}

/// The partial sums of one parameter counted twice, another's not at all.
std::string partOfTheNorm(proto::Plan &plan, Random &random) {
  std::vector<Place> places = find(plan, [](const proto::Command &command) {
    return isKernel(command, "global_norm") && command.kernel().operands_size() > 2;
  });
  const auto place = random.pick(places);
  if (!place)
    return "";
  auto &operands = *at(plan, *place).mutable_kernel()->mutable_operands();
  for (int i = 1; i + 1 < operands.size(); ++i)
    if (bytesOf(operands[i]) == bytesOf(operands[0])) {
      operands[i] = operands[0];
      return describe(plan, *place) + " counts one part twice";
    }
  return "";
}

/// The metric that the user watches, from elsewhere.
std::string otherMetric(proto::Plan &plan, Random &) {
  auto &metrics = *program(*plan.mutable_roles(0), "step")->mutable_metrics();
  if (metrics.size() < 3 || metrics[1].source().dtype() != metrics[2].source().dtype())
    return "";
  *metrics[1].mutable_source() = metrics[2].source();
  return "metric " + metrics[1].name() + " is read where " + metrics[2].name() + " is";
}

/// An event of a slot of random numbers or of a table: a gather along the wrong axis.
std::string otherKernel(proto::Plan &plan, Random &random) {
  const auto place =
      random.pick(find(plan, [](const proto::Command &command) { return isKernel(command, "reduce_sum"); }));
  if (!place)
    return "";
  at(plan, *place).mutable_kernel()->set_kernel("reduce_max");
  return describe(plan, *place) + " instead of reduce_sum";
}

} // namespace

std::vector<Kind> meaningKinds() {
  return {{"scale-applied-twice", true, scaleTwice},
          {"wrong-learning-rate", true, wrongRate},
          {"wrong-weight-decay", true, wrongDecay},
          {"wrong-beta", true, wrongBeta},
          {"wrong-clip", true, wrongClip},
          {"clip-not-applied", true, clipNotApplied},
          {"wrong-epsilon", true, wrongEpsilon},
          {"wrong-attention-scale", true, wrongScore},
          {"not-causal", true, notCausal},
          {"wrong-transpose", true, wrongTranspose},
          {"swap-operands", false, swapOperands},
          {"other-opcode", true, otherOpcode},
          {"tied-weight-not-summed", true, tiedNotSummed},
          {"drop-feed", true, dropFeed},
          {"feed-of-another-input", true, otherInput},
          {"part-of-the-norm", true, partOfTheNorm},
          {"other-metric", true, otherMetric},
          {"other-kernel", true, otherKernel}};
}

namespace {

std::vector<Kind> singleKinds() {
  std::vector<Kind> all;
  for (const std::vector<Kind> &kinds :
       {orderKinds(), memoryKinds(), gradientKinds(), meaningKinds(), messageKinds(), endKinds(), rankKinds(),
        closedWorldKinds(), sumKinds(), statisticsKinds(), overflowKinds()})
    all.insert(all.end(), kinds.begin(), kinds.end());
  return all;
}

/// Of any two kinds, in one plan; the second may hide the first.
std::string twoDefects(proto::Plan &plan, Random &random) {
  static const std::vector<Kind> kinds = singleKinds();
  const std::string first = random.pick(kinds)->plant(plan, random);
  const std::string second = first.empty() ? "" : random.pick(kinds)->plant(plan, random);
  return second.empty() ? "" : first + "; and " + second;
}

} // namespace

std::vector<Kind> allKinds() {
  std::vector<Kind> all = singleKinds();
  all.push_back({"two-defects", false, twoDefects});
  return all;
}

} // namespace ds::mutation
