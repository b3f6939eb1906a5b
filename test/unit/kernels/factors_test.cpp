// What the rows say that splitting does: calls of every kernel are cut along each of their factors, the reference runs
// the parts, and their results are joined or combined to the whole's, bit by bit where nothing is combined.
#include "kernels/Factors.h"
#include "test/unit/kernels/DrawnCalls.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iostream>
#include <map>
#include <optional>
#include <ranges>

namespace ds::kernels::test {

namespace {

constexpr DType F64 = DType::F64;
constexpr FactorKind splitKinds[] = {FactorKind::Pass, FactorKind::Sum, FactorKind::Mean, FactorKind::Max,
                                     FactorKind::Min};
constexpr std::string_view kindNames[] = {"pass", "sum", "mean", "max", "min", "whole", "window", "moved"};

/// The operands after a run; nothing where the reference refuses the call.
std::optional<std::vector<Buffer>> run(const DrawnCall &call) {
  try {
    const bool hasWorkspace = call.kernel.ends_with("norm_grad"); // without which those refuse
    std::vector<Buffer> operands =
        hasWorkspace ? operandsOn(Device::Cpu, call.kernel, call.operands, call.attributes) : call.operands;
    const Invocation invocation = invocationOf(call.kernel, operands, call.attributes);
    if (!runKernel(cpuReferenceKernels(), invocation, operands, 1, {.seed = 7}).ok())
      return std::nullopt;
    operands.erase(operands.begin() + int64_t(call.operands.size()), operands.end());
    return operands;
  } catch (const Error &) {
    return std::nullopt;
  }
}

/// A call, its factors, and its operands after a run.
struct Whole {
  DrawnCall call;
  FactorMap map;
  std::vector<Buffer> results;

  Invocation invocation() const { return invocationOf(call.kernel, call.operands, call.attributes); }
  bool isWritten(size_t operand) const { return CallLayout(invocation())[operand].isWritten(); }
};

/// Where the elements of a part of an operand stand in the whole, in order.
std::vector<int64_t> placesOf(const FactorMap &map, size_t operand, size_t factor, int64_t part, int64_t parts) {
  std::vector<int64_t> places = {0};
  for (const Dimension &dimension : map.operands[operand])
    for (size_t f : dimension) {
      const int64_t size = map.factors[f].size, count = f == factor ? size / parts : size;
      std::vector<int64_t> inner;
      for (int64_t place : places)
        for (int64_t i = 0; i < count; ++i)
          inner.push_back(place * size + (f == factor ? part * count : 0) + i);
      places.swap(inner);
    }
  return places;
}

/// Runs every part; each has the operands after it. Nothing where a part's call is refused.
std::optional<std::vector<std::vector<Buffer>>> runParts(const Whole &whole, size_t factor, int64_t parts) {
  std::vector<std::vector<Buffer>> results;
  for (int64_t part = 0; part < parts; ++part) {
    const Invocation invocation = partOf(whole.invocation(), whole.map, factor, part, parts);
    DrawnCall call{whole.call.kernel, {}, invocation.attributes};
    for (size_t i = 0; i < invocation.operands.size(); ++i) {
      Buffer &operand = call.operands.emplace_back(invocation.operands[i]);
      const size_t bytes = size_t(byteSize(operand.type.dtype));
      std::byte *to = operand.data();
      for (int64_t place : placesOf(whole.map, i, factor, part, parts)) {
        std::memcpy(to, whole.call.operands[i].data() + size_t(place) * bytes, bytes);
        to += bytes;
      }
    }
    auto ran = run(call);
    if (!ran)
      return std::nullopt;
    results.push_back(std::move(*ran));
  }
  return results;
}

bool isNear(double a, double b, double scale) {
  return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= 1e-10 * (1 + scale);
}

/// Whether an operand that lacks the factor follows from the parts' as a kind says.
bool combines(const Buffer &whole, const std::vector<std::vector<Buffer>> &parts, size_t operand, FactorKind kind) {
  if (kind == FactorKind::Pass)
    return std::ranges::all_of(parts, [&](const std::vector<Buffer> &part) {
      return std::memcmp(part[operand].data(), whole.data(), whole.bytes()) == 0;
    });
  for (int64_t i = 0; i < elementCount(whole.type.shape); ++i) {
    double result = parts[0][operand].at(i), scale = std::abs(result);
    for (size_t part = 1; part < parts.size(); ++part) {
      const double value = parts[part][operand].at(i);
      scale += std::abs(value);
      result = kind == FactorKind::Max   ? std::max(result, value)
               : kind == FactorKind::Min ? std::min(result, value)
                                         : result + value;
    }
    if (kind == FactorKind::Mean)
      result /= double(parts.size());
    if (!isNear(result, whole.at(i), std::isfinite(scale) ? scale : 0))
      return false;
  }
  return true;
}

/// Whether the results of so many parts make up the whole's as a kind says.
bool makesUp(const Whole &whole, size_t factor, const std::vector<std::vector<Buffer>> &parts, FactorKind kind) {
  for (size_t i = 0; i < whole.results.size(); ++i) {
    if (!whole.isWritten(i))
      continue;
    const Buffer &result = whole.results[i];
    if (!whole.map.has(i, factor)) {
      if (!combines(result, parts, i, kind))
        return false;
      continue;
    }
    const size_t bytes = size_t(byteSize(result.type.dtype));
    for (size_t part = 0; part < parts.size(); ++part) {
      const std::byte *from = parts[part][i].data();
      for (int64_t place : placesOf(whole.map, i, factor, int64_t(part), int64_t(parts.size()))) {
        if (std::memcmp(from, result.data() + size_t(place) * bytes, bytes) != 0)
          return false;
        from += bytes;
      }
    }
  }
  return true;
}

/// The first kind by which two parts, and as many as the factor's size, make up the whole; Whole where none does.
FactorKind kindOf(const Whole &whole, size_t factor) {
  std::vector<FactorKind> kinds(std::begin(splitKinds), std::end(splitKinds));
  const int64_t size = whole.map.factors[factor].size;
  for (int64_t parts : {int64_t(2), size}) {
    if (size % parts != 0)
      continue;
    const auto results = runParts(whole, factor, parts);
    if (!results)
      return FactorKind::Whole;
    std::erase_if(kinds, [&](FactorKind kind) { return !makesUp(whole, factor, *results, kind); });
  }
  return kinds.empty() ? FactorKind::Whole : kinds.front();
}

/// Whether the map is right about a factor: no other kind is, but for the three that forbid a cut.
bool isRight(const Whole &whole, size_t factor) {
  const FactorKind kind = whole.map.factors[factor].kind;
  return kindOf(whole, factor) == (isSplit(kind) ? kind : FactorKind::Whole);
}

Whole drawWhole(const KernelRow &row, Random &random) {
  DrawnCall call = drawCall(row, random);
  FactorMap map = factorsOf(invocationOf(call.kernel, call.operands, call.attributes));
  auto results = run(call);
  if (!results)
    throw Error("the reference refuses a drawn call of " + call.kernel);
  return {std::move(call), std::move(map), std::move(*results)};
}

std::string textOf(const Whole &whole) {
  std::string text = whole.call.kernel;
  for (size_t i = 0; i < whole.map.operands.size(); ++i) {
    text += " [";
    for (const Dimension &dimension : whole.map.operands[i]) {
      for (size_t factor : dimension)
        text += " " + std::to_string(factor) + ":" + std::to_string(whole.map.factors[factor].size) +
                std::string(kindNames[size_t(whole.map.factors[factor].kind)]);
      text += ",";
    }
    text += "]";
  }
  for (const auto &[name, value] : whole.call.attributes)
    if (const auto *integer = std::get_if<int64_t>(&value))
      text += " " + name + "=" + std::to_string(*integer);
    else if (const auto *word = std::get_if<std::string>(&value))
      text += " " + name + "=" + *word;
  return text;
}

constexpr int callsOfRow = 24;

TEST(Factors, SayWhatSplittingDoes) {
  std::map<std::string_view, int> counts;
  int rows = 0, factors = 0;
  for (const KernelRow &row : allKernels()) {
    Random random(uint64_t(++rows));
    for (int i = 0; i < callsOfRow; ++i) {
      const Whole whole = drawWhole(row, random);
      for (size_t factor = 0; factor < whole.map.factors.size(); ++factor) {
        if (whole.map.factors[factor].size == 1)
          continue;
        const FactorKind kind = whole.map.factors[factor].kind, found = kindOf(whole, factor);
        ++factors;
        ++counts[kindNames[size_t(kind)]];
        EXPECT_EQ(kindNames[size_t(found)], kindNames[size_t(isSplit(kind) ? kind : FactorKind::Whole)])
            << "factor " << factor << " of " << textOf(whole);
      }
    }
  }
  std::cout << rows << " rows, " << factors << " factors:";
  for (const auto &[kind, count] : counts)
    std::cout << " " << count << " " << kind;
  std::cout << "\n";
}

TEST(Factors, PartsOfPartsLieInTheWhole) {
  const auto cut = [](const Invocation &call, size_t factor) { return partOf(call, factorsOf(call), factor, 1, 2); };
  const TensorType x{F64, {4, 6}};
  const Invocation dropout{"dropout", {x, x}, {{"ratio", 0.5}, {"op_id", int64_t(1)}}};
  const Invocation quarter = cut(cut(dropout, 0), 1);
  EXPECT_EQ(quarter.operands[1].shape, (Shape{2, 3}));
  EXPECT_EQ(quarter.attributes.at("whole"), AttributeValue(Shape{4, 6}));
  EXPECT_EQ(quarter.attributes.at("first"), AttributeValue(Shape{2, 3}));
  const Invocation lookup{"gather", {{F64, {8, 3}}, {DType::I64, {5}}, {F64, {5, 3}}}, {{"axis", int64_t(0)}}};
  const Invocation rows = cut(cut(lookup, 0), 0);
  EXPECT_EQ(rows.operands[0].shape, (Shape{2, 3}));
  EXPECT_EQ(rows.attributes.at("whole"), AttributeValue(Shape{8}));
  EXPECT_EQ(rows.attributes.at("first"), AttributeValue(Shape{6}));
}

/// One wrong entry of a map: another kind, or a dimension of one operand that another factor has.
std::vector<std::pair<size_t, FactorMap>> wrongMaps(const FactorMap &right) {
  std::vector<std::pair<size_t, FactorMap>> wrong; // with the factor that is wrong
  for (size_t factor = 0; factor < right.factors.size(); ++factor) {
    if (right.factors[factor].size == 1)
      continue;
    const FactorKind kind = right.factors[factor].kind;
    for (FactorKind other : {FactorKind::Pass, FactorKind::Sum, FactorKind::Max, FactorKind::Whole})
      if (other != kind && (isSplit(other) || isSplit(kind))) {
        wrong.emplace_back(factor, right);
        wrong.back().second.factors[factor].kind = other;
      }
    const auto having = [&](size_t i) { return right.has(i, factor); };
    const auto operands = std::views::iota(size_t(0), right.operands.size());
    if (!isSplit(kind) || std::ranges::count_if(operands, having) < 2)
      continue; // a wrong dimension is one more reason not to cut it; without any, nothing is
    for (size_t i : operands)
      if (having(i)) {
        wrong.emplace_back(factor, right);
        FactorMap &map = wrong.back().second;
        map.factors.push_back({right.factors[factor].size, FactorKind::Whole});
        for (Dimension &dimension : map.operands[i])
          std::ranges::replace(dimension, factor, map.factors.size() - 1);
      }
  }
  return wrong;
}

TEST(Factors, PlantedMistakesAreFound) {
  int rows = 0, planted = 0, hit = 0;
  for (const KernelRow &row : allKernels()) {
    Random random(uint64_t(++rows));
    bool isHit = false;
    for (int i = 0; i < 4; ++i) {
      Whole whole = drawWhole(row, random);
      for (auto &[factor, map] : wrongMaps(whole.map)) {
        whole.map = std::move(map);
        ++planted;
        isHit = true;
        EXPECT_FALSE(isRight(whole, factor)) << "factor " << factor << " of " << textOf(whole);
      }
    }
    hit += isHit;
  }
  std::cout << planted << " mistakes in the factors of " << hit << " rows\n";
  EXPECT_GE(hit, 40);
}

} // namespace

} // namespace ds::kernels::test
