//===- Facts.cpp - counts and their spelling ------------------------------===//
#include "compiler/report/Facts.h"

#include "core/DType.h"
#include "kernels/KernelTable.h"
#include "runtime/plan/plan.pb.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ds::report {
namespace {

std::vector<kernels::TensorType> tensorsOf(const plan::proto::Plan &plan,
                                           const google::protobuf::RepeatedField<uint32_t> &values) {
  std::vector<kernels::TensorType> tensors;
  for (uint32_t index : values) {
    const plan::proto::ReferenceValue &value = plan.reference().values(int(index));
    tensors.push_back({DType(value.dtype()), Shape(value.shape().begin(), value.shape().end())});
  }
  return tensors;
}

/// Of the kernel of the op's name, without what a gradient computes again: attention's scores.
uint64_t flopsOf(const plan::proto::Plan &plan, const plan::proto::ReferenceOp &op) {
  constexpr std::string_view prefix = "train.";
  const kernels::KernelRow *kernel =
      op.op().starts_with(prefix) ? kernels::findKernel(std::string_view(op.op()).substr(prefix.size())) : nullptr;
  if (!kernel)
    return 0;
  const auto reads = tensorsOf(plan, op.operands()), writes = tensorsOf(plan, op.results());
  const kernels::CallTypes call(*kernel, reads, writes);
  const double flops = kernels::flopsOf(kernel->name, call);
  const bool repeats = kernel->name == "attention_grad";
  const double again = repeats ? 2 * double(call.elements("q")) * double(call.dim("k", 2)) : 0;
  return uint64_t(std::max(0.0, flops - again));
}

/// Times the micro-batches, for what every micro-batch does.
uint64_t flopsPerStep(const plan::proto::Plan &plan, const plan::proto::ReferenceOp &op) {
  const uint64_t times =
      op.function() == "microbatch" ? plan.training().accumulation_steps() : op.function() == "update";
  return times == 0 ? 0 : times * flopsOf(plan, op);
}

std::string scaled(double value, double step, const char *const *units, int count) {
  int unit = 0;
  while (value >= step && unit + 1 < count) {
    value /= step;
    ++unit;
  }
  std::array<char, 64> text{};
  const int decimals = unit == 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  std::snprintf(text.data(), text.size(), "%.*f%s", decimals, value, units[unit]);
  return text.data();
}

} // namespace

WorldSize worldSize(const plan::proto::Plan &plan) {
  WorldSize world;
  for (const plan::proto::Axis &axis : plan.world().axes()) {
    if (axis.name() == "pipe")
      world.pipe = axis.size();
    else if (axis.name() == "data")
      world.data = axis.size();
    else if (axis.name() == "expert")
      world.expert = axis.size();
    else if (axis.name() == "tensor")
      world.tensor = axis.size();
  }
  return world;
}

int roleOf(const plan::proto::Plan &plan, uint64_t rank) {
  for (int i = 0; i < plan.roles_size(); ++i)
    for (int k = 0; k + 1 < plan.roles(i).ranks_size(); k += 2)
      if (plan.roles(i).ranks(k) <= rank && rank <= plan.roles(i).ranks(k + 1))
        return i;
  return -1;
}

uint64_t matmulFlopsPerStep(const plan::proto::Plan &plan) {
  uint64_t sum = 0;
  for (const plan::proto::ReferenceOp &op : plan.reference().ops())
    sum += flopsPerStep(plan, op);
  return sum;
}

uint64_t matmulFlopsPerStep(const plan::proto::Plan &plan, const plan::proto::Role &role) {
  if (plan.roles_size() == 1)
    return matmulFlopsPerStep(plan);
  std::set<uint32_t> ops; // an op that several commands implement counts once
  for (const plan::proto::Routine &routine : role.routines())
    for (const plan::proto::Command &command : routine.commands())
      ops.insert(command.reference().begin(), command.reference().end());
  uint64_t sum = 0;
  for (uint32_t op : ops)
    sum += flopsPerStep(plan, plan.reference().ops(int(op)));
  return sum;
}

uint64_t recomputeFlopsPerStep(const plan::proto::Plan &plan, const plan::proto::Role &role) {
  std::set<uint32_t> done;
  uint64_t sum = 0;
  for (const plan::proto::Routine &routine : role.routines())
    for (const plan::proto::Command &command : routine.commands())
      for (uint32_t op : command.reference())
        if (!done.insert(op).second)
          sum += flopsPerStep(plan, plan.reference().ops(int(op)));
  return sum;
}

uint64_t elements(const google::protobuf::RepeatedField<int64_t> &shape) {
  uint64_t count = 1;
  for (int64_t size : shape)
    count *= uint64_t(size);
  return count;
}

uint64_t bytesOf(const plan::proto::Variable &variable) {
  const auto dtype = dtypeFromNumber(int(variable.dtype()));
  return dtype ? elements(variable.shape()) * uint64_t(byteSize(*dtype)) : 0;
}

std::string_view dtypeName(plan::proto::DType dtype) {
  const auto known = dtypeFromNumber(int(dtype));
  return known ? name(*known) : std::string_view("?");
}

std::string shapeText(const google::protobuf::RepeatedField<int64_t> &shape) {
  std::string text = "[";
  for (int64_t size : shape)
    text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

std::string_view categoryName(plan::proto::Buffer::Category category) {
  switch (category) {
  case plan::proto::Buffer::WEIGHTS:
    return "weights";
  case plan::proto::Buffer::GRADIENTS:
    return "gradients";
  case plan::proto::Buffer::OPTIMIZER:
    return "optimizer";
  case plan::proto::Buffer::ACTIVATIONS:
    return "activations";
  case plan::proto::Buffer::WORKSPACE:
    return "workspace";
  case plan::proto::Buffer::COMMUNICATION:
    return "communication";
  case plan::proto::Buffer::INPUTS:
    return "inputs";
  case plan::proto::Buffer::CONSTANTS:
    return "constants";
  default:
    return "?";
  }
}

std::string_view categoryMeaning(plan::proto::Buffer::Category category) {
  switch (category) {
  case plan::proto::Buffer::WEIGHTS:
    return "parameters and buffers of the model";
  case plan::proto::Buffer::GRADIENTS:
    return "gradients of parameters, summed over micro-batches until the update";
  case plan::proto::Buffer::OPTIMIZER:
    return "moments and the step counter";
  case plan::proto::Buffer::ACTIVATIONS:
    return "results of the forward that the backward needs, and values on their way from one kernel to the next";
  case plan::proto::Buffer::WORKSPACE:
    return "scratch of a single kernel";
  case plan::proto::Buffer::COMMUNICATION:
    return "what ranks gather, reduce and send";
  case plan::proto::Buffer::INPUTS:
    return "samples of a micro-batch";
  case plan::proto::Buffer::CONSTANTS:
    return "tensors known when the plan was made";
  default:
    return "?";
  }
}

std::string bytesText(uint64_t bytes) {
  static constexpr const char *units[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB"};
  return scaled(double(bytes), 1024, units, 6);
}

std::string countText(double count) {
  static constexpr const char *units[] = {"", " k", " M", " G", " T", " P", " E"};
  return scaled(count, 1000, units, 7);
}

std::string grouped(uint64_t number) {
  std::string digits = std::to_string(number);
  for (size_t at = digits.size(); at > 3; at -= 3)
    digits.insert(at - 3, ",");
  return digits;
}

std::string secondsText(double seconds) {
  static constexpr const char *units[] = {" ns", " us", " ms", " s"};
  return scaled(seconds * 1e9, 1000, units, 4);
}

std::string plural(uint64_t count, const std::string &thing, const char *ending) {
  return grouped(count) + " " + thing + (count == 1 ? "" : ending);
}

std::string rankRanges(const plan::proto::Role &role) {
  std::string text;
  for (int k = 0; k + 1 < role.ranks_size(); k += 2)
    text += (text.empty() ? "" : ", ") + std::to_string(role.ranks(k)) +
            (role.ranks(k) == role.ranks(k + 1) ? "" : " to " + std::to_string(role.ranks(k + 1)));
  return text;
}

} // namespace ds::report
