//===- PartitionMethod.cpp - weights of units -----------------------------===//
#include "compiler/scheduling/PartitionMethod.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ds::scheduling {
namespace {

using Kind = PartitionMethod::Kind;

std::vector<double> oneEach(const PartitionProblem &problem) {
  const std::vector<int64_t> begins = layerBegins(problem);
  if (int64_t(begins.size()) < problem.stages)
    return std::vector<double>(problem.units.size(), 1);
  std::vector<double> weights(problem.units.size(), 0);
  for (int64_t begin : begins)
    weights[size_t(begin)] = 1;
  return weights;
}

} // namespace

std::optional<PartitionMethod> PartitionMethod::fromName(std::string_view name) {
  static constexpr std::string_view type = "type:";
  if (name == "best")
    return PartitionMethod{Kind::Best, {}};
  if (name == "uniform")
    return PartitionMethod{Kind::Uniform, {}};
  if (name == "parameters")
    return PartitionMethod{Kind::Parameters, {}};
  if (name.starts_with(type) && name.size() > type.size())
    return PartitionMethod{Kind::Type, std::string(name.substr(type.size()))};
  return std::nullopt;
}

std::vector<double> weightsToBalance(Kind kind, const PartitionProblem &problem,
                                     std::span<const int64_t> parameterBytes, std::span<const std::string> layers) {
  if (kind == Kind::Uniform)
    return oneEach(problem);
  std::vector<double> weights;
  std::set<std::string_view> seen; // a layer counts once, at its first unit
  for (size_t i = 0; i < problem.units.size(); ++i)
    switch (kind) {
    case Kind::Best:
      weights.push_back(problem.units[i].seconds);
      break;
    case Kind::Parameters:
      weights.push_back(double(parameterBytes[i]));
      break;
    case Kind::Type:
      weights.push_back(!layers[i].empty() && seen.insert(layers[i]).second ? 1 : 0);
      break;
    case Kind::Uniform:
      break; // above
    }
  return weights;
}

} // namespace ds::scheduling
