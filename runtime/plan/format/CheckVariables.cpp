//===- CheckVariables.cpp - variables, their sources, and graph inputs ----===//
#include "core/DType.h"
#include "core/WeightNames.h"
#include "runtime/plan/format/PlanChecks.h"
#include "runtime/plan/plan.pb.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>

namespace ds::plan {
namespace {

/// Whether every element of `dtype` can be `value` without loss of meaning: integers take whole numbers in range.
bool representable(double value, DType dtype) {
  const auto within = [&](double low, double high) {
    return value >= low && value <= high && value == std::trunc(value);
  };
  switch (dtype) {
  case DType::Bool:
    return within(0, 1);
  case DType::U8:
    return within(0, 255);
  case DType::U16:
    return within(0, 65535);
  case DType::U32:
    return within(0, 4294967295.0);
  case DType::I32:
    return within(-2147483648.0, 2147483647.0);
  case DType::I64:
    return within(-9007199254740992.0, 9007199254740992.0);
  case DType::F32:
  case DType::F64:
  case DType::BF16:
  case DType::F16:
    return true;
  }
  return false;
}

/// Bytes of a variable's element in the file, where values may lie that are widened, or rounded to 16 bits.
uint64_t storedElementBytes(const std::string &stored, DType dtype, const std::string &place) {
  const bool isHalf = stored == "BF16" || stored == "F16";
  if (stored.empty())
    return uint64_t(byteSize(dtype));
  const bool rounds = (isHalf || stored == "F32") && isNarrowFloat(dtype);
  if (!(isHalf && isWideFloat(dtype)) && !(stored == "F32" && dtype == DType::F64) && !rounds)
    refuse(place,
           "its elements lie in their file as '" + stored + "', which is not widened to " + std::string(name(dtype)));
  return isHalf ? 2 : 4;
}

void checkRange(const proto::Plan &plan, const proto::Source::FileRange &range, uint64_t bytes,
                const std::string &place) {
  checkIndex(range.file(), plan.weight_files_size(), "weight file", place);
  const uint64_t size = plan.weight_files(int(range.file())).size();
  if (range.length() > size || range.offset() > size - range.length())
    refuse(place, "its bytes " + std::to_string(range.offset()) + " + " + std::to_string(range.length()) +
                      " pass the end of weight file " + std::to_string(range.file()) + " of " + std::to_string(size));
  if (range.length() != bytes)
    refuse(place,
           "its range has " + std::to_string(range.length()) + " bytes, but its shape needs " + std::to_string(bytes));
}

void checkRandom(const proto::Source::Random &random, DType dtype, const std::string &place) {
  if (random.distribution() != "normal" && random.distribution() != "uniform")
    refuse(place, "its random distribution is neither normal nor uniform");
  if (!std::isfinite(random.mean()) || !std::isfinite(random.deviation()) || random.deviation() < 0)
    refuse(place, "its random mean or deviation is not finite, or the deviation is negative");
  if (!isFloat(dtype))
    refuse(place, "random values need a float dtype");
}

void checkSource(const proto::Plan &plan, const proto::Variable &variable, uint64_t bytes, const std::string &place) {
  const DType dtype = checkDType(variable.dtype(), place);
  const proto::Source &source = variable.source();
  switch (source.from_case()) {
  case proto::Source::kRange:
    return checkRange(plan, source.range(),
                      bytes / uint64_t(byteSize(dtype)) * storedElementBytes(source.range().dtype(), dtype, place),
                      place);
  case proto::Source::kLiteral:
    if (source.literal().size() != bytes)
      refuse(place, "its literal has " + std::to_string(source.literal().size()) + " bytes, but its shape needs " +
                        std::to_string(bytes));
    return;
  case proto::Source::kFill:
    if (!representable(source.fill(), dtype))
      refuse(place, "its fill value is no " + std::string(name(dtype)));
    return;
  case proto::Source::kRandom:
    return checkRandom(source.random(), dtype, place);
  case proto::Source::kMissing:
    return checkName(source.missing(), place);
  case proto::Source::FROM_NOT_SET:
    refuse(place, "it has no source for its first value");
  }
}

/// Whether gradients, and state, of a parameter of type `parameter` may have type `own`: its own, or sums of gradients
/// one of 16 bits, or state float32 where the parameter has 16 bits.
bool isTypeOf(DType own, DType parameter) {
  return own == parameter || (isNarrowFloat(own) && parameter == DType::F32) ||
         (own == DType::F32 && isNarrowFloat(parameter));
}

/// A gradient, or state, is as large as the parameter that it is of.
void checkOf(const proto::Plan &plan, const proto::Variable &variable, const std::string &place) {
  checkIndex(variable.of(), plan.variables_size(), "variable", place);
  const proto::Variable &parameter = plan.variables(int(variable.of()));
  if (variable.kind() != proto::Variable::GRADIENT && variable.kind() != proto::Variable::OPTIMIZER)
    refuse(place, "it is of variable " + parameter.name() + ", but only gradients and optimizer state are");
  if (parameter.kind() != proto::Variable::PARAMETER)
    refuse(place, "it is of variable " + parameter.name() + ", which is no parameter");
  if (!isTypeOf(DType(variable.dtype()), DType(parameter.dtype())) ||
      !std::ranges::equal(parameter.shape(), variable.shape()))
    refuse(place, "its dtype or shape is not that of parameter " + parameter.name());
}

/// Of a variable: it may be a tensor of checkpoints and exports.
void checkTensorName(const std::string &name, const std::string &place) {
  checkName(name, place);
  if (name == safetensorsNotes)
    refuse(place, "its name " + name + " is the one under which safetensors files keep notes; rename it in the model");
}

/// `names`: of variables and aliases so far, and whose they are.
void checkVariable(const proto::Plan &plan, int index, std::unordered_map<std::string_view, int> &names) {
  const proto::Variable &variable = plan.variables(index);
  const std::string place = describe("variable", index, variable.name());
  checkTensorName(variable.name(), describe("variable", index, ""));
  if (variable.name().empty())
    refuse(place, "it has no name");
  const auto firstNote = [&](const std::string &name) {
    const int first = names.at(name);
    return note(describe("variable", first, plan.variables(first).name()) + " has it first, as its name or an alias");
  };
  if (!names.try_emplace(variable.name(), index).second)
    refuse(place, "another variable or alias has its name" + firstNote(variable.name()));
  for (const std::string &alias : variable.aliases()) {
    checkTensorName(alias, place + ", an alias");
    if (alias.empty())
      refuse(place, "an alias of it is empty");
    if (!names.try_emplace(alias, index).second)
      refuse(place, "its alias '" + alias + "' names something else too" + firstNote(alias));
  }
  if (variable.kind() < proto::Variable::PARAMETER || variable.kind() > proto::Variable::CONSTANT)
    refuse(place, "there is no variable kind " + std::to_string(variable.kind()));
  checkSource(plan, variable, checkTensorBytes(variable.dtype(), variable.shape(), place), place);
  if (variable.has_of())
    checkOf(plan, variable, place);
}

void checkInput(const proto::Plan &plan, int index, OwnNames &names) {
  const proto::Input &input = plan.inputs(index);
  const std::string place = describe("input", index, input.name());
  names.add(input.name(), index, describe("input", index, ""));
  checkTensorBytes(input.dtype(), input.shape(), place);
  if (input.shape_size() == 0 || uint64_t(input.shape(0)) != plan.training().micro_batch_size())
    refuse(place, "its shape " + shapeText(input.shape()) + " does not begin with the micro-batch of " +
                      std::to_string(plan.training().micro_batch_size()) + " samples");
  const bool integer = !isFloat(checkDType(input.dtype(), place));
  if (!input.tokens().empty() && input.tokens() != "same" && input.tokens() != "next")
    refuse(place, "its tokens field is none of '', same, next");
  if (!input.tokens().empty() && (!integer || input.dtype() == proto::DTYPE_BOOL || input.shape_size() != 2))
    refuse(place, "tokens need an integer dtype and the shape [samples, length]");
  if (input.limit() > uint64_t(std::numeric_limits<int64_t>::max()))
    refuse(place, "its limit is beyond 2^63 - 1");
  if ((input.limit() > 0 || input.has_ignored()) && !integer)
    refuse(place, "limits are for integers, and it is " + std::string(name(checkDType(input.dtype(), place))));
}

} // namespace

void checkVariables(const proto::Plan &plan) {
  std::unordered_map<std::string_view, int> names;
  for (int i = 0; i < plan.variables_size(); ++i)
    checkVariable(plan, i, names);
  OwnNames inputs("input");
  for (int i = 0; i < plan.inputs_size(); ++i)
    checkInput(plan, i, inputs);
}

} // namespace ds::plan
