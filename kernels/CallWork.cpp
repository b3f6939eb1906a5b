#include "kernels/CallWork.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace ds::kernels {

FlopsOf attentionGradScratch;

namespace {

/// Of the memory's rate, what our kernels for GPUs reach by construction; all others that are not here reach it.
/// Assumed by reading, and not measured.
constexpr std::array<std::pair<std::string_view, double>, 2> memoryShares = {{
    {"gather", 0.35},      // rows that lie apart
    {"gather_grad", 0.35}, // every block reads all indices
}};

double memoryShare(std::string_view kernel) {
  const auto *found = std::ranges::find(memoryShares, kernel, &std::pair<std::string_view, double>::first);
  return found == memoryShares.end() ? 1 : found->second;
}

/// Of products: op(a) is [rows, depth], op(b) [depth, columns]. Where b has no leading dimensions, a's are rows.
ProductShape shapeOf(std::string_view kernel, const CallTypes &call, double flops) {
  if (!isProduct(kernel) || flops == 0)
    return {};
  const std::string_view result = call["c"].shape.size() > 1 ? "c" : "dw";
  const double columns = double(call.dim(result, -1));
  double count = 1;
  for (int d = 0; d + 2 < int(call["b"].shape.size()); ++d)
    count *= double(call.dim("b", d));
  const double rows = double(call.elements(result)) / columns / count;
  return {.count = count, .rows = rows, .columns = columns, .depth = flops / (2 * count * rows * columns)};
}

} // namespace

Work workOf(const KernelRow &row, const CallTypes &call, double operandBytes, unsigned bits, bool tf32) {
  const double flops = flopsOf(row.name, call);
  const bool isGradient = row.name.ends_with("attention_grad");
  const bool isPlain = isAttention(row.name) && (bits != 16 || !whyPlainAttention(row.name, call).empty());
  return {.flops = flops,
          .bytes = operandBytes - untouchedBytes(row.name, call),
          .kind = workKind(isAttention(row.name), bits, tf32),
          .hiddenFlops = call.isCausal() ? flopsOf(row.name, call.withoutCausal()) - flops : 0,
          .product = bits <= 16 ? shapeOf(row.name, call, flops) : ProductShape(), // others have other tiles
          .scratch = isGradient && !isPlain ? attentionGradScratch(call) : 0,
          .memoryShare = memoryShare(row.name),
          .isPlain = isPlain};
}

} // namespace ds::kernels
