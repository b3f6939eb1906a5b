//===- MovedMeaning.cpp - kernels that lay out parts and name no op ---------===//
//
// Ranks bring together parts of an inner dimension one behind another, as an all_gather does; a transpose puts them
// side by side, or the other way round before a reduce_scatter. Of a value that all ranks have, each may take its part.
//
//===----------------------------------------------------------------------===//
#include "compiler/check/meaning/Meaning.h"

#include "compiler/check/meaning/ReferenceOps.h"
#include "kernels/KernelRows.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <span>

namespace ds::check {

namespace {

uint64_t product(std::span<const int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), uint64_t(1), std::multiplies<>());
}

std::span<const int64_t> integersOf(const proto::KernelCommand &kernel, std::string_view name) {
  const proto::Attribute *attribute = attributeOf(kernel, name);
  if (!attribute)
    return {};
  const auto &values = attribute->integers().values();
  return {values.data(), size_t(values.size())};
}

/// How a permutation exchanges the first `first` dimensions with the `second` behind them, if it does nothing else.
struct Exchange {
  size_t first, second;
};
std::optional<Exchange> exchangeOf(std::span<const int64_t> permutation) {
  const auto zero = std::ranges::find(permutation, 0);
  if (zero == permutation.begin() || zero == permutation.end())
    return std::nullopt;
  const Exchange exchange{size_t(permutation[0]), size_t(zero - permutation.begin())};
  for (size_t d = 0; d < permutation.size(); ++d)
    if (const size_t from = d < exchange.second                    ? d + exchange.first
                            : d < exchange.second + exchange.first ? d - exchange.second
                                                                   : d;
        size_t(permutation[d]) != from)
      return std::nullopt;
  return exchange;
}

/// What each rank takes of a value that all have, if `starts` of a slice says where its part of one dimension begins.
std::optional<Spread> partTaken(const proto::Plan &plan, const proto::KernelCommand &kernel) {
  const proto::Attribute *starts = attributeOf(kernel, "starts");
  if (!starts || starts->integers().rank_steps_size() != 1)
    return std::nullopt;
  const proto::RankSteps &own = starts->integers().rank_steps(0);
  const proto::Communicator &ranks = plan.communicators(int(own.communicator()));
  const std::span<const int64_t> x = shapeOf(kernel.operands(0)), y = shapeOf(kernel.operands(1));
  const auto d =
      size_t(std::ranges::find_if(own.values(), [](int64_t step) { return step != 0; }) - own.values().begin());
  const auto isOne = [](int64_t step) { return step == 1; };
  if (ranks.axes_size() != 1 || plan::batchAxes(plan).contains(ranks.axes(0)) || d >= x.size() ||
      !std::ranges::all_of(integersOf(kernel, "steps"), isOne))
    return std::nullopt;
  const uint64_t parts = plan.world().axes(int(ranks.axes(0))).size();
  for (size_t i = 0; i < x.size(); ++i)
    if (starts->integers().values(int(i)) != 0 || own.values(int(i)) != (i == d ? y[i] : 0) ||
        uint64_t(x[i]) != uint64_t(y[i]) * (i == d ? parts : 1))
      return std::nullopt;
  return Spread{
      ranks.axes(0), {}, Cut::inParts(product(x.first(d)), parts, uint64_t(y[d]) * product(x.subspan(d + 1)))};
}

} // namespace

bool Meaning::isExchange(const proto::Command &command) {
  return command.reference_size() == 0 && command.kernel().kernel() == kernels::kernel<"transpose">.name &&
         exchangeOf(integersOf(command.kernel(), "perm"));
}

/// What such a kernel makes of its operand; nothing of others.
std::optional<uint32_t> Meaning::moved(const proto::Command &command, std::span<const uint32_t> held) {
  const proto::KernelCommand &kernel = command.kernel();
  if (command.reference_size() != 0)
    return std::nullopt;
  if (isExchange(command)) {
    const Exchange exchange = exchangeOf(integersOf(kernel, "perm")).value();
    const std::span<const int64_t> x = shapeOf(kernel.operands(0));
    return values_.exchanged(held[0], product(x.first(exchange.first)),
                             product(x.subspan(exchange.first, exchange.second)),
                             product(x.subspan(exchange.first + exchange.second)));
  }
  if (kernel.kernel() != kernels::kernel<"slice">.name)
    return std::nullopt;
  const std::optional<Spread> part = partTaken(plan_, kernel);
  return part ? std::optional(values_.placed(held[0], *part)) : std::nullopt;
}

} // namespace ds::check
