// What splitting sums of squares does: blocks pass, from the outside, as long as what is inside is whole blocks.
#include "kernels/Call.h"
#include "kernels/Factors.h"

namespace ds::kernels {

void blockSumSquaresFactors(FactorWriter &to) {
  const int64_t block = to.call.integer("block");
  int64_t inside = to.call.elements("g"), rest = to.call.elements("partials");
  if (inside == 0) {
    to.each("g", FactorKind::Whole);
    to.each("partials", FactorKind::Whole);
    return;
  }
  Dimensions g;
  Dimension partials;
  for (int64_t size : to.call.shape("g")) {
    inside /= size;
    // Of this dimension, how much makes a block; 0: what is inside does not fit blocks.
    const int64_t share = inside % block == 0 ? 1 : block % inside == 0 ? block / inside : 0;
    if (share == 0 || size % share != 0) {
      g.push_back({to.factor(size, FactorKind::Whole)});
      continue;
    }
    partials.push_back(to.factor(size / share));
    g.push_back({partials.back(), to.factor(share, FactorKind::Whole)});
    rest /= size / share;
  }
  partials.push_back(to.factor(rest, FactorKind::Whole));
  to.set("g", g);
  to.set("partials", {partials});
}

} // namespace ds::kernels
