//===- Adapters.cpp - low-rank adapters that a plan says it was asked for -===//
#include "compiler/sources/Adapters.h"

#include "compiler/sources/ModelFile.h"
#include "core/DType.h"
#include "core/Error.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <regex>
#include <string>
#include <string_view>

namespace ds::sources {
namespace {

constexpr std::string_view down = ".lora_A", up = ".lora_B";

std::string asked(const plan::proto::Plan &plan) { return "--lora " + std::to_string(plan.sources().lora_rank()); }

bool matches(const std::string &name, const std::string &pattern) try {
  return std::regex_search(name, std::regex(pattern, std::regex::extended));
} catch (const std::regex_error &) {
  return false;
}

} // namespace

Adapters::Adapters(const plan::proto::Plan &plan, const ModelFile &model) : plan_(plan), model_(model) {
  if (plan.sources().lora_rank() > 0)
    for (const Variable &variable : plan.variables())
      if (variable.kind() == Variable::PARAMETER)
        parameters_[variable.name()] = &variable;
}

/// The weight beside which an adapter's part stands; null: it is none.
const plan::proto::Variable *Adapters::weightOf(const Variable &variable) const {
  const std::string &name = variable.name();
  if (parameters_.empty() || model_.tensors.contains(name) || (!name.ends_with(down) && !name.ends_with(up)))
    return nullptr;
  const auto found = parameters_.find(std::string_view(name).substr(0, name.size() - down.size()));
  return found == parameters_.end() ? nullptr : found->second;
}

std::optional<Claim> Adapters::require() const {
  if (parameters_.empty())
    return std::nullopt;
  size_t adapted = 0;
  for (const auto &[name, variable] : parameters_)
    if (const Variable *weight = weightOf(*variable)) {
      requirePair(*weight);
      requirePart(*variable, *weight, name.ends_with(down));
      ++adapted;
    }
  if (adapted == 0)
    throw Error("the plan records " + asked(plan_) + ", but has no adapters");
  return Claim{"adapters", std::to_string(adapted / 2) + " weights have adapters of rank " +
                               std::to_string(plan_.sources().lora_rank()) +
                               " beside them, which begin as LoRA's do; nothing else is trained but what --trainable "
                               "names"};
}

/// A is [rank, inputs] and B [outputs, rank] of a weight that is [outputs, inputs], or the other way round.
void Adapters::requirePair(const Variable &weight) const {
  const auto find = [&](std::string_view ending) -> const Variable & {
    const auto found = parameters_.find(weight.name() + std::string(ending));
    if (found == parameters_.end() || found->second->shape_size() != 2)
      throw Error("the adapter of " + weight.name() + " has no matrix " + weight.name() + std::string(ending) +
                  " in the plan");
    return *found->second;
  };
  const Variable &a = find(down), &b = find(up);
  const auto rank = int64_t(plan_.sources().lora_rank());
  const int64_t inputs = a.shape(1), outputs = b.shape(0);
  const bool fits = weight.shape_size() == 2 && ((weight.shape(0) == outputs && weight.shape(1) == inputs) ||
                                                 (weight.shape(0) == inputs && weight.shape(1) == outputs));
  if (!fits || a.shape(0) != rank || b.shape(1) != rank)
    throw Error("the adapter of " + weight.name() + " has not the shapes in the plan that " + asked(plan_) +
                " gives it");
  const std::string &targets = plan_.sources().lora_targets();
  if (!targets.empty() && !matches(weight.name(), targets))
    throw Error(weight.name() + " has an adapter in the plan, but --lora-targets '" + targets + "' does not match it");
  if (weight.trainable())
    throw Error(weight.name() + " has an adapter in the plan, and is trained itself");
}

void Adapters::requirePart(const Variable &part, const Variable &weight, bool isDown) const {
  // What is frozen may be kept in 16 bits without what is trained beside it, and that where the configuration says so.
  const DType own = DType(part.dtype()), wanted = DType(weight.dtype());
  if (!(isNarrowFloat(own) || own == (isNarrowFloat(wanted) ? DType::F32 : wanted)) || !part.trainable() ||
      !part.persistent() || part.aliases_size() > 0)
    throw Error(part.name() + " is not trained and exported in the type of " + weight.name() + " by the plan, as " +
                asked(plan_) + " asks");
  const plan::proto::Source &source = part.source();
  const auto &random = source.random();
  const bool begins = isDown ? source.has_random() && random.distribution() == "uniform" && random.mean() == 0 &&
                                   random.deviation() == 1 / std::sqrt(double(part.shape(1)))
                             : source.has_fill() && source.fill() == 0;
  if (!begins)
    throw Error("the first value of " + part.name() + " is not an adapter's: " +
                (isDown ? "A is drawn between -1 and 1 by the root of its inputs" : "B is zero"));
}

} // namespace ds::sources
