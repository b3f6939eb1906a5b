#include "kernels/Factors.h"

#include "kernels/Call.h"
#include "kernels/KernelTable.h"

#include <algorithm>
#include <map>

namespace ds::kernels {

bool FactorMap::has(size_t operand, size_t factor) const {
  return std::ranges::any_of(operands[operand], [&](const Dimension &d) { return std::ranges::count(d, factor) > 0; });
}

/// Says in a call's attributes which part it is along a factor.
static void placePart(Attributes &attributes, const FactorMap &map, size_t factor, int64_t part, int64_t parts) {
  Shape whole;
  size_t entry = 0;
  for (size_t i = 0; i < map.factors.size(); ++i)
    if (map.factors[i].isPlaced) {
      entry = i == factor ? whole.size() : entry;
      whole.push_back(map.factors[i].size);
    }
  attributes.try_emplace("whole", whole);
  auto &first = std::get<Shape>(attributes.try_emplace("first", Shape(whole.size())).first->second);
  first[entry] += part * (whole[entry] / parts);
}

Invocation partOf(const Invocation &invocation, const FactorMap &map, size_t factor, int64_t part, int64_t parts) {
  Invocation result{invocation.kernel, {}, invocation.attributes};
  for (size_t i = 0; i < map.operands.size(); ++i) {
    result.operands.push_back(invocation.operands[i]);
    for (size_t d = 0; d < map.operands[i].size(); ++d)
      if (std::ranges::count(map.operands[i][d], factor))
        result.operands[i].shape[d] /= parts;
  }
  if (const std::string_view attribute = map.factors[factor].attribute; !attribute.empty())
    std::get<int64_t>(result.attributes.find(attribute)->second) /= parts;
  if (map.factors[factor].isPlaced)
    placePart(result.attributes, map, factor, part, parts);
  return result;
}

FactorWriter::FactorWriter(const Call &ofCall) : call(ofCall) { map.operands.resize(call.operandCount()); }

size_t FactorWriter::factor(int64_t size, FactorKind kind, std::string_view attribute) {
  map.factors.push_back({size, kind, attribute});
  return map.factors.size() - 1;
}

Dimensions FactorWriter::each(size_t operand, FactorKind kind) {
  Dimensions dimensions;
  for (int64_t size : call.shape(operand))
    dimensions.push_back({factor(size, kind)});
  set(operand, dimensions);
  return dimensions;
}

Dimensions FactorWriter::each(std::string_view operand, FactorKind kind) { return each(call[operand], kind); }

void FactorWriter::set(size_t operand, const Dimensions &dimensions) {
  const Shape &shape = call.shape(operand);
  Dimensions &own = map.operands[operand];
  own.assign(dimensions.end() - int64_t(shape.size()), dimensions.end());
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1 && sizeOf(own[d]) != 1) // it broadcasts
      own[d].clear();
    call.require(sizeOf(own[d]) == shape[d], "its factors do not make up " + toString(shape));
  }
}

void FactorWriter::set(std::string_view operand, const Dimensions &dimensions) { set(call[operand], dimensions); }

void FactorWriter::setKind(const Dimension &dimension, FactorKind kind) {
  for (size_t factor : dimension)
    map.factors[factor].kind = kind;
}

int64_t FactorWriter::sizeOf(const Dimension &dimension) const {
  int64_t size = 1;
  for (size_t factor : dimension)
    size *= map.factors[factor].size;
  return size;
}

/// A name in the row's shapes is a factor that passes, or is whole where a mark says so; an operand whose shape the row
/// does not say is whole.
void namedFactors(FactorWriter &to) {
  std::map<std::string_view, Dimensions> known;
  for (size_t i = 0; i < to.call.operandCount(); ++i) {
    const std::string_view row = to.call.operandRow(i).shape;
    if (row.empty()) {
      to.each(i, FactorKind::Whole);
      continue;
    }
    const Shape &shape = to.call.shape(i);
    const std::vector<SizeName> names = sizeNames(row);
    Dimensions dimensions;
    for (const SizeName &name : names) {
      const size_t count = name.isRest ? shape.size() + 1 - names.size() : 1;
      const auto [it, isNew] = known.try_emplace(name.name);
      for (size_t d = 0; isNew && d < count; ++d)
        it->second.push_back(
            {to.factor(shape[dimensions.size() + d], name.isWhole ? FactorKind::Whole : FactorKind::Pass)});
      dimensions.insert(dimensions.end(), it->second.begin(), it->second.end());
    }
    to.set(i, dimensions);
  }
}

} // namespace ds::kernels
