// What splitting convolutions and pools does. Channels and filters are cut by group and within a group. Places pass
// where each window is a run of the input of its own, and no window lies over its edge.
#include "kernels/Call.h"
#include "kernels/Factors.h"

namespace ds::kernels {

namespace {

/// Appends the places to operands `x` and `y`, of windows of sizes `window`.
void addPlaces(FactorWriter &to, const Shape &in, const Shape &window, const Shape &out, FactorKind kind, Dimensions &x,
               Dimensions &y) {
  const std::vector<int64_t> strides = to.call.integers("strides"), dilations = to.call.integers("dilations");
  const std::vector<int64_t> low = to.call.integers("low");
  for (size_t d = 0; d < window.size(); ++d) {
    const int64_t from = in[d + 2], places = out[d + 2];
    if (low[d] == 0 && (window[d] - 1) * dilations[d] < strides[d] && from == places * strides[d]) {
      y.push_back({to.factor(places, kind)});
      x.push_back({y.back()[0], to.factor(strides[d], FactorKind::Whole)});
    } else {
      y.push_back({to.factor(places, FactorKind::Window)});
      x.push_back({to.factor(from, FactorKind::Window)});
    }
  }
}

/// Kinds of samples and places, of the channels and of the filters of a group.
struct ConvKinds {
  FactorKind samples, channels, filters;
};

void convolution(FactorWriter &to, const char *x, const char *w, const char *y, ConvKinds kinds) {
  const Shape &in = to.call.shape(x), &weight = to.call.shape(w), &out = to.call.shape(y);
  const int64_t groups = to.call.integer("groups");
  const size_t samples = to.factor(in[0], kinds.samples), group = to.factor(groups, FactorKind::Pass, "groups");
  const size_t channels = to.factor(weight[1], kinds.channels), filters = to.factor(weight[0] / groups, kinds.filters);
  Dimensions from = {{samples}, {group, channels}}, result = {{samples}, {group, filters}};
  Dimensions window = {{group, filters}, {channels}};
  for (size_t d = 2; d < weight.size(); ++d)
    window.push_back({to.factor(weight[d], FactorKind::Whole)});
  addPlaces(to, in, {weight.begin() + 2, weight.end()}, out, kinds.samples, from, result);
  to.set(x, from);
  to.set(w, window);
  to.set(y, result);
  if (to.call.hasOperand("bias"))
    to.set("bias", {{group, filters}});
}

} // namespace

void convFactors(FactorWriter &to) {
  const FactorKind channels = to.call.flag("bias") ? FactorKind::Whole : FactorKind::Sum; // each part would add it
  convolution(to, "x", "w", "y", {FactorKind::Pass, channels, FactorKind::Pass});
}
void convInputGradFactors(FactorWriter &to) {
  convolution(to, "dx", "w", "dy", {FactorKind::Pass, FactorKind::Pass, FactorKind::Sum});
}
void convWeightGradFactors(FactorWriter &to) {
  convolution(to, "x", "dw", "dy", {FactorKind::Sum, FactorKind::Pass, FactorKind::Pass});
}

void poolFactors(FactorWriter &to) {
  const bool isGradient = to.call.hasOperand("dx");
  const char *const x = isGradient ? "dx" : "x", *const y = isGradient ? "dy" : "y";
  const Shape &in = to.call.shape(x);
  Dimensions from = {{to.factor(in[0])}, {to.factor(in[1])}}, result = from;
  addPlaces(to, in, to.call.integers("window"), to.call.shape(y), FactorKind::Pass, from, result);
  to.set(x, from);
  to.set(y, result);
  if (isGradient && to.call.hasOperand("x"))
    to.set("x", from);
}

} // namespace ds::kernels
