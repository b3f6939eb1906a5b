//===- Facts.cpp - counts and their spelling ------------------------------===//
#include "compiler/report/Facts.h"

#include "core/DType.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Mesh.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace ds::report {
namespace {

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
  const auto size = [&](const char *axis) { return plan::axisSize(plan.world(), axis); };
  return {.pipe = size("pipe"), .data = size("data"), .expert = size("expert"), .tensor = size("tensor")};
}

std::vector<std::string> ownOfDataRanks(const plan::proto::Plan &plan) {
  std::vector<std::string> names;
  for (const plan::proto::Variable &variable : plan.variables())
    if (!plan::varyingAxes(plan.world(), variable.placement()).empty())
      names.push_back(variable.name());
  return names;
}

namespace {

/// Of all roles' routines.
template <typename Holds> uint64_t countKernels(const plan::proto::Plan &plan, Holds holds) {
  uint64_t count = 0;
  for (const plan::proto::Role &role : plan.roles())
    for (const plan::proto::Routine &routine : role.routines())
      for (const plan::proto::Command &command : routine.commands())
        count += holds(command.kernel());
  return count;
}

} // namespace

CompiledKernels compiledKernels(const plan::proto::Plan &plan) {
  CompiledKernels all{.kernels = uint64_t(plan.codes_size())};
  for (const plan::proto::DeviceCode &code : plan.codes())
    all.bytes += code.text().size();
  all.commands = countKernels(plan, [](const plan::proto::KernelCommand &kernel) { return kernel.has_code(); });
  return all;
}

uint64_t tunedCommands(const plan::proto::Plan &plan) {
  return countKernels(plan, [](const plan::proto::KernelCommand &kernel) { return kernel.has_algorithm(); });
}

int roleOf(const plan::proto::Plan &plan, uint64_t rank) {
  for (int i = 0; i < plan.roles_size(); ++i)
    for (int k = 0; k + 1 < plan.roles(i).ranks_size(); k += 2)
      if (plan.roles(i).ranks(k) <= rank && rank <= plan.roles(i).ranks(k + 1))
        return i;
  return -1;
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

std::string percentText(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %%", 100 * share);
  return text.data();
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
