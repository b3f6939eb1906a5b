#include "kernels/Expansion.h"

#include "kernels/KernelTable.h"

#include <algorithm>
#include <ranges>

namespace ds::kernels {

namespace {

std::vector<std::string_view> partsOf(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  for (const auto part : std::views::split(text, separator))
    parts.emplace_back(part.begin(), part.end());
  return parts;
}

/// "y, mean = layer_norm x gamma".
ExpandedOp opIn(std::string_view text) {
  const size_t equals = text.find(" = ");
  std::vector<std::string_view> words = partsOf(text.substr(equals + 3), " ");
  return {words[0], partsOf(text.substr(0, equals), ", "), {words.begin() + 1, words.end()}};
}

Expansion expansionIn(std::string_view kernel, std::string_view when, std::string_view ops) {
  Expansion expansion{kernel, partsOf(when, " "), {}, {}, {}};
  if (!when.empty()) {
    std::string_view &first = expansion.attributes.front();
    const size_t equals = first.find('=');
    expansion.text = equals == std::string_view::npos ? std::string_view() : first.substr(equals + 1);
    expansion.when = first = first.substr(0, equals);
  }
  for (const std::string_view op : partsOf(ops, "; "))
    expansion.ops.push_back(opIn(op));
  return expansion;
}

bool isOf(const Expansion &expansion, const Invocation &call) {
  if (expansion.kernel != call.kernel || expansion.when.empty())
    return expansion.kernel == call.kernel;
  const auto attribute = call.attributes.find(expansion.when);
  if (attribute == call.attributes.end())
    return false;
  const auto *text = std::get_if<std::string>(&attribute->second);
  return text ? *text == expansion.text : attribute->second != AttributeValue(int64_t(0));
}

} // namespace

std::span<const Expansion> allExpansions() {
  static const std::vector<Expansion> expansions = {
#define DS_KERNEL(...)
#undef DS_FUSED
#define DS_FUSED(kernel, when, ops) expansionIn(#kernel, when, ops),
#include "kernels/Kernels.inc"
#undef DS_KERNEL
  };
  return expansions;
}

const Expansion *expansionOf(const Invocation &call) {
  const auto all = allExpansions();
  const auto found = std::ranges::find_if(all, [&](const Expansion &one) { return isOf(one, call); });
  return found == all.end() ? nullptr : &*found;
}

} // namespace ds::kernels
