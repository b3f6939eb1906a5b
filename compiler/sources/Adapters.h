//===- Adapters.h - low-rank adapters that a plan says it was asked for ---===//
#pragma once

#include "compiler/sources/Sources.h"
#include "runtime/plan/plan.pb.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace ds::sources {

struct ModelFile;

/// The parameters of a plan that are no tensors of its model, since --lora made them. Both outlive it.
class Adapters {
public:
  Adapters(const plan::proto::Plan &plan, const ModelFile &model);

  bool contains(const plan::proto::Variable &variable) const { return weightOf(variable) != nullptr; }
  /// That they are of the recorded rank, beside weights that the recorded targets name, and begin as adapters do.
  /// Throws ds::Error; nothing where --lora was not given.
  std::optional<Claim> require() const;

private:
  using Variable = plan::proto::Variable;
  const Variable *weightOf(const Variable &variable) const;
  void requirePair(const Variable &weight) const;
  void requirePart(const Variable &part, const Variable &weight, bool isDown) const;

  const plan::proto::Plan &plan_;
  const ModelFile &model_;
  std::map<std::string, const Variable *, std::less<>> parameters_; // by name; empty without --lora
};

} // namespace ds::sources
